"""The input of `penstock lint`: environments, specs and manifests, converted to subjects of `penstock.sizing.lint`."""
