"""Windows in one query, and a keyed function with a timer in another one, whose state Spark describes by absolute paths."""

from penstock import Job, Tag, aggregate, process, tumbling, value
from tests.jobs.spark.apps.every_state import SCHEMA, Names


def build(job: Job) -> None:
    rows = job.source("a", SCHEMA)
    job.write(aggregate(rows, tumbling("10s"), keys=["key"], n="count(*)").select(key="key", n="n"), "out")
    if job.parameters.get("names", True):
        kept = process(
            rows, ["key"], Names(), output="key string, names string", state={"seen": value("names string, ends long")}, order="time"
        )
        job.write(kept, "names")
    job.side_output("errors")
    job.side_output("late", Tag.LATE)
