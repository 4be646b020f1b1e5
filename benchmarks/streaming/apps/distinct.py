"""Each order once, however often its record arrives within a day."""

from penstock import Job, Tag, deduplicate

OPERATORS = ("read-orders", "deduplicate", "write-orders")


def build(job: Job) -> None:
    """Declares the job."""
    job.write(deduplicate(job.source("orders", "id STRING NOT NULL, at BIGINT"), ["id"], within="1d").select(id="id"), "out")
    job.side_output("errors")
    job.side_output("late", Tag.LATE)
