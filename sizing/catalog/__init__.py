"""The instance types of EC2: what they have, what Kubernetes can allocate of it, and what they cost."""
