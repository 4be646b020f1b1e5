"""Several jobs in one driver: a Spark that they share, and a Python process each."""
