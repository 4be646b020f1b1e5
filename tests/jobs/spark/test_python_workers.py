"""Python workers, which have their imports from the daemon that forks them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import SparkSession


def _described(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Of the worker: whether its modules lie in what was there before the fork, its threads, a random number."""
    import gc
    import sys
    from pathlib import Path

    import numpy as np

    for _ in batches:
        pass
    row = {
        "imported": {"pandas", "pyarrow", "pyspark.worker", "penstock.jobs.job"} <= set(sys.modules) and gc.get_freeze_count() > 0,
        "threads": len(list(Path("/proc/self/task").iterdir())),
        "number": float(np.random.random()),
    }
    yield pa.RecordBatch.from_pylist([row])


def test_workers_of_tasks_are_forked_with_their_imports_and_draw_their_own_numbers(session: SparkSession) -> None:
    rows = session.range(2, numPartitions=2).mapInArrow(_described, "imported boolean, threads long, number double").collect()
    assert [(row.imported, row.threads) for row in rows] == [(True, 1), (True, 1)]
    assert len({row.number for row in rows}) == len(rows)
