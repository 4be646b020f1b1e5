"""Pipelines that deploy environments: one description, written out for Concourse and for GitHub Actions."""
