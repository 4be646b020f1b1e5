"""Rows of one input counted by windows of ten seconds."""

from penstock import Job, Tag, aggregate, tumbling


def build(job: Job) -> None:
    rows = job.source("a", "key STRING NOT NULL, at STRING, name STRING")
    job.write(aggregate(rows, tumbling("10s"), n="count(*)", names="array_join(array_sort(collect_list(name)), ' ')"), "out")
    job.side_output("errors")
    job.side_output("late", Tag.LATE)
