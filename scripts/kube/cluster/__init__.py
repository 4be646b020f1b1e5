"""A Kubernetes cluster on this machine whose pods run: nodes are groups of namespaces that vanish with their first process."""
