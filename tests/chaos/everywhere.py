"""One input as it is, written to a sink of every kind that loses and doubles nothing."""

from penstock.jobs.job import Job
from penstock.jobs.stream.streams import Tag

SINKS = ("out", "topic", "table", "hashes")


def build(job: Job) -> None:
    rows = job.source("a", "key STRING NOT NULL, at STRING, name STRING").select(name="name", length="length(name)")
    job.write(rows, {name: None for name in job.spec.spec.sinks if name in SINKS})
    job.side_output("errors")
    job.side_output("late", Tag.LATE)
