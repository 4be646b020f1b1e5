"""Rows that a function of the app shuffles by what differs at each attempt; the test knows the tasks, and holds one after the shuffle."""

import uuid
from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame

from penstock import Batch, Job
from tests.jobs.spark.executors.held import Passage

# The folder of the passages' notes and lock, set by the test.
folder = ""
# The micro-batches that the function was called for.
calls: list[int] = []


def build(job: Job) -> None:
    rows = job.source("a", "key STRING NOT NULL, at STRING, name STRING")
    job.write(rows.select(name="name"), "slow")
    job.side_output("errors")


def slow(rows: DataFrame, batch: Batch) -> None:
    calls.append(batch.number)
    scattered = rows.select("name").mapInArrow(Passage(folder, "before"), "name string").mapInArrow(_differing, "name string, by string")
    shuffled = scattered.repartition(2, "by")
    shuffled.mapInArrow(Passage(folder, "after", held=True, partition=1), shuffled.schema).collect()


def _differing(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield batch.append_column("by", pa.array([uuid.uuid4().hex for _ in range(batch.num_rows)]))
