"""Two inputs joined by key within a second; some keys are hot."""

from penstock import Job, Side, Tag, interval_join

SCHEMA = "key STRING NOT NULL, at STRING, name STRING"


def build(job: Job) -> None:
    a, b = job.source("a", SCHEMA), job.source("b", SCHEMA)
    pairs = interval_join(Side("a", a, "key"), Side("b", b, "key"), lower="-1s", upper="1s", hot_keys=True)
    job.write(pairs.select(left="a.name", right="b.name"), "out")
    job.side_output("errors")
    job.side_output("late", Tag.LATE)
