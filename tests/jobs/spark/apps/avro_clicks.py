"""Avro values, unchanged."""

from penstock import Job


def build(job: Job) -> None:
    job.write(job.source("a", "user STRING NOT NULL, n BIGINT"), "out")
    job.side_output("errors")
