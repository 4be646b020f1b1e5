"""One input, unchanged, into files and into a sink controlled by the test: it ends a micro-batch only when permitted."""

import queue
import threading

from pyspark.sql import DataFrame

from penstock import Batch, Job

_LIMIT_S = 120
# The numbers of the micro-batches that the sink received, and a permit for each one that may end.
entered: "queue.Queue[int]" = queue.Queue()
let = threading.Semaphore(0)
# Once set, the sink fails when permitted.
failing = threading.Event()


def build(job: Job) -> None:
    rows = job.source("a", "key STRING NOT NULL, at STRING")
    job.write(rows.select(key="key"), {"out": None, "slow": None})
    job.side_output("errors")


def slow(rows: DataFrame, batch: Batch) -> None:
    entered.put(batch.number)
    assert let.acquire(timeout=_LIMIT_S), "the test never let the micro-batch end"
    if failing.is_set():
        raise ConnectionError("the other side is gone")
