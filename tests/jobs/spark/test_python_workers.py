"""Python workers, which have their imports from the daemon that forks them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import SparkSession


def _described(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Of the worker: whether its modules were there before the fork and come from folders, its threads, a random number."""
    import gc
    import sys
    from pathlib import Path

    import numpy as np

    for _ in batches:
        pass
    row = {
        "imported": {"pandas", "pyarrow", "pyspark.worker", "penstock.jobs.blocks.joins"} <= set(sys.modules) and gc.get_freeze_count() > 0,
        "unpacked": not any(entry.endswith(".zip") and Path(entry).exists() for entry in sys.path),
        "threads": len(list(Path("/proc/self/task").iterdir())),
        "number": float(np.random.random()),
    }
    yield pa.RecordBatch.from_pylist([row])


def test_workers_of_tasks_are_forked_with_their_imports_and_draw_their_own_numbers(session: SparkSession) -> None:
    rows = (
        session.range(2, numPartitions=2)
        .mapInArrow(_described, "imported boolean, unpacked boolean, threads long, number double")
        .collect()
    )
    assert [(row.imported, row.unpacked, row.threads) for row in rows] == [(True, True, 1), (True, True, 1)]
    assert len({row.number for row in rows}) == len(rows)
