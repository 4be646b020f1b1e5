"""Sources: origins of a job's rows."""
