"""Jobs: the job spec, and the PySpark blocks that a job is built from."""

if __name__ != "penstock.jobs":
    raise ImportError(f"{__name__} is a part of Penstock here, not a package of its own: import penstock.jobs")
