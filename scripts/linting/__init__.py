"""What `penstock lint` looks at: environments, specs and manifests, made into subjects of `penstock.sizing.lint`."""
