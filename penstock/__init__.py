"""Penstock: sizes, provisions, runs and verifies PySpark Structured Streaming jobs on AWS, from one job spec."""
