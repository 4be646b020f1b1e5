"""Converts a FlinkDeployment to the job spec that replaces it."""
