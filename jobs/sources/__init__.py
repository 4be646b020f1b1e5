"""Sources: where a job's rows come from."""
