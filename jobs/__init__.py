"""Jobs: the job spec, and the PySpark blocks that a job is built from."""

if __name__ != "penstock.jobs":
    raise ImportError(f"{__name__} is part of Penstock and cannot be imported on its own; import penstock.jobs instead")
