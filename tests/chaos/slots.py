"""One input as it is, written to the sinks in which a suspended driver changes nothing: files, an exactly-once topic, a versioned table."""

from penstock.jobs.job import Job
from penstock.jobs.stream.streams import Tag

SINKS = ("out", "topic", "table")
# Keys of the table: each is overwritten in every micro-batch.
SLOTS = 7


def build(job: Job) -> None:
    number = "CAST(substring(name, 5) AS INT)"
    rows = job.source("a", "key STRING NOT NULL, at STRING, name STRING").select(name="name", number=number, slot=f"{number} % {SLOTS}")
    job.write(rows, {name: None for name in job.spec.spec.sinks if name in SINKS})
    job.side_output("errors")
    job.side_output("late", Tag.LATE)
