"""Clicks within a minute of the impression that they belong to."""

from penstock import Job, Side, Tag, interval_join

OPERATORS = ("read-impressions", "read-clicks", "join", "write-pairs")


def build(job: Job) -> None:
    """Declares the job."""
    impressions = Side("i", job.source("impressions", "id STRING NOT NULL, at BIGINT"), "id")
    clicks = Side("c", job.source("clicks", "id STRING NOT NULL, at BIGINT"), "id")
    job.write(interval_join(impressions, clicks, lower="0s", upper="60s").select(id="i.id", after_ms="c.at - i.at"), "out")
    job.side_output("errors")
    job.side_output("late", Tag.LATE)
