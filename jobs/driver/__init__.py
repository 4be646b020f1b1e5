"""The driver's program: it builds the job, runs its micro-batches and reports its progress."""
