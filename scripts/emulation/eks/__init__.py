"""EKS: clusters, node groups, add-ons, access entries and pod identity. There is no Kubernetes behind it."""
