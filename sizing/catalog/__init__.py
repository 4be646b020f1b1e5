"""EC2 instance types: resources, Kubernetes allocatable and prices."""
