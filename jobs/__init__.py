"""Jobs: the job spec, and the PySpark blocks that a job is built from."""
