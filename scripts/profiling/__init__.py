"""Measures what a job's slots and CPU seconds process, here or in a deployment, and how fast a machine is."""
