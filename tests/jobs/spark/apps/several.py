"""Queries apart in one job, chosen by the parameter `shape`.

The sink `gate` is a function controlled by the test: while `closed` is set, it ends a micro-batch only when permitted, and fails when told.
"""

import queue
import threading

from pyspark.sql import DataFrame

from penstock import Batch, Job, Tag
from penstock.jobs.blocks.windows import aggregate, tumbling
from penstock.jobs.stream.streams import Stream

_LIMIT_S = 120
entered: "queue.Queue[int]" = queue.Queue()
let = threading.Semaphore(0)
closed, failing = threading.Event(), threading.Event()


def build(job: Job) -> None:
    a = _source(job, "a")
    match job.parameters["shape"]:
        case "one source":
            job.write(_named(a), "out")
            # A step of the second query's own, for the same tag.
            job.write(_named(a.divert("odd", "name = 'strange'", "'a strange row'")), "other")
        case "two sources":
            job.write(_named(a), "out")
            job.write(_named(_source(job, "b")), "other")
        case "counts":
            job.write(_counts(a), "out")
        case "counts and rows":
            job.write(_counts(a), "out")
            job.write(_named(a), "other")
        case "rows and counts":
            job.write(_named(a), "other")
            job.write(_counts(a), "out")
        case "one sink":
            job.write(_named(a), "out")
            job.write(_counts(a), {"other": None, "out": "n > 1"})
        case "gated":
            job.write(_named(a), "out")
            job.write(_named(a), {"gate": None, "other": None})
    job.side_output("errors")
    job.side_output("errors", "odd")
    job.side_output("late", Tag.LATE)


def _source(job: Job, name: str) -> Stream:
    rows = job.source(name, "key STRING NOT NULL, at STRING, name STRING")
    return rows.divert("odd", "name = 'odd'", "'an odd row'").filter("coalesce(name, '') <> 'skip'")


def _named(rows: Stream) -> Stream:
    return rows.select(key="key", name="name")


def _counts(rows: Stream) -> Stream:
    return aggregate(rows, tumbling("10s"), keys=["key"], n="count(*)").select(key="key", n="n")


def gate(rows: DataFrame, batch: Batch) -> None:
    if not closed.is_set():
        return
    entered.put(batch.number)
    assert let.acquire(timeout=_LIMIT_S), "the test never let the micro-batch end"
    if failing.is_set():
        raise ConnectionError("the other side is gone")
