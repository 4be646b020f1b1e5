"""One stack a module, each with one side: AWS, or Kubernetes (charts)."""
