"""A real Kubernetes API server on this machine: etcd and kube-apiserver, built once from their Go modules, and helm beside them."""
