"""What `penstock lint` looks at: environments, specs and manifests, made into subjects of `sizing.lint`; and how it shows findings."""
