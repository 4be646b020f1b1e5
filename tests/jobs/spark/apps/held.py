"""A function in Python that takes as long as a row says: seconds, or until a file exists. Each source has a query of its own."""

import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from penstock import Job, Tag


def build(job: Job) -> None:
    for source, sink in zip(job.spec.spec.sources, ("out", "other"), strict=False):
        rows = job.source(source, "key STRING NOT NULL, at STRING, name STRING").df.select("key", "event_time", "name")
        job.write(rows.mapInArrow(held, rows.schema), sink)
    job.side_output("errors")
    job.side_output("late", Tag.LATE)


def held(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows, when each row lets them go."""
    for batch in batches:
        for name in batch.column("name").to_pylist():
            _wait(name)
        yield batch


def _wait(name: str) -> None:
    if not name.startswith("/"):
        time.sleep(float(name))
        return
    while not Path(name).exists():
        time.sleep(0.05)
