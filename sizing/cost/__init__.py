"""Cost of a job on AWS: prices with date and source, a bill for a usage, and the difference between two bills."""
