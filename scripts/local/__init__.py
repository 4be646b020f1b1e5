"""A job on one machine: its environment, its input, the run, and what is compared at the end."""
