"""A real Kubernetes API server on this machine: etcd, kube-apiserver and helm, built once from their Go modules."""
