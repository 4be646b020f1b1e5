"""A job on one machine: its environment, its input, the run, and the comparison at the end."""
