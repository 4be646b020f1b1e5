"""Builders of Kubernetes manifests: pure functions from the environment to plain data."""
