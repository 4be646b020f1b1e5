"""EKS: clusters, node groups, add-ons, access entries and pod identity, without a Kubernetes cluster."""
