"""One stack per module, either of AWS resources or of Helm releases on Kubernetes (charts)."""
