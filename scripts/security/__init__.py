"""The security gate: what the stacks and manifests of an environment would make, scanned before anything is applied."""
