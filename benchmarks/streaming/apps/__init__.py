"""Penstock's apps for the jobs of the benchmark that no shipped app does."""
