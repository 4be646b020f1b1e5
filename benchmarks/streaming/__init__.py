"""Penstock beside other ways to run the same job: ``./scripts/benchmark``."""
