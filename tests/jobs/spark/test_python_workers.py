"""Python workers, which have their imports from the daemon that forks them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.jobs.blocks.keyed import process
from penstock.jobs.driver.failure import as_fault
from penstock.jobs.driver.root_cause import OwnCode
from penstock.jobs.stream.streams import Stream
from tests.jobs.spark.blocks import Input, row, run
from tests.jobs.spark.running import Surroundings


def _described(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Of the worker: whether its modules were there before the fork and come from folders, its parent's threads, a random number."""
    import gc
    import os
    import sys
    from pathlib import Path

    import numpy as np

    for _ in batches:
        pass
    row = {
        "imported": {"pandas", "pyarrow", "pyspark.worker", "penstock.jobs.blocks.joins"} <= set(sys.modules) and gc.get_freeze_count() > 0,
        "unpacked": not any(entry.endswith(".zip") and Path(entry).exists() for entry in sys.path),
        # A worker that has had other tasks may have threads of its own.
        "threads": len(list(Path(f"/proc/{os.getppid()}/task").iterdir())),
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


def _daemon_of_arrow(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _ in batches:
        pass
    yield pa.RecordBatch.from_pylist([{"daemon": os.getppid()}])


def _daemon_of_pandas(frames: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    for _ in frames:
        pass
    yield pd.DataFrame({"daemon": [os.getppid()]})


_DAEMONS: Mapping[str, Callable[[DataFrame], DataFrame]] = {
    "mapInArrow": lambda rows: rows.mapInArrow(_daemon_of_arrow, "daemon long"),
    "mapInPandas": lambda rows: rows.mapInPandas(_daemon_of_pandas, "daemon long"),
    "udf": lambda rows: rows.select(F.udf(lambda _: os.getppid(), "long")("id")),
    "RDD": lambda rows: rows.sparkSession.createDataFrame(rows.rdd.map(lambda _: (os.getppid(),)), "daemon long"),
}


def test_keyed_functions_and_other_python_have_one_daemon(surroundings: Surroundings) -> None:
    """Spark starts a daemon for each environment of its workers: another one would take as much memory again on each executor."""

    def build(streams: Mapping[str, Stream]) -> Stream:
        return process(streams["clicks"], ["user"], lambda row, key: [{"daemon": os.getppid()}], output="daemon LONG")

    keyed = run(surroundings, {"clicks": Input("user STRING", [[row("10", user="ann")]])}, build)
    rows = surroundings.session.range(1, numPartitions=1)
    daemons = {kind: {found[0] for found in of(rows).collect()} for kind, of in _DAEMONS.items()}
    of_keyed = {row["daemon"] for row in keyed.rows}
    assert daemons == dict.fromkeys(_DAEMONS, of_keyed)


RAISING = """\
def limit(limits, user):
    try:
        return limits[user]
    except KeyError as error:
        raise ValueError(f"no limit for {user}") from error
def of_a_column(user):
    return limit({}, user)
def keyed(row, key):
    return [{"limit": limit({}, row.user)}]
"""


@pytest.fixture
def raising(tmp_path: Path) -> dict[str, Any]:
    """The functions of a team, in a file that workers need not import."""
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(RAISING, str(tmp_path / "raising.py"), "exec"), names)
    return names


@pytest.mark.parametrize("kind", ["of a column", "keyed"])
def test_of_an_exception_with_a_cause_the_one_that_the_app_raised_last_is_named(
    surroundings: Surroundings, tmp_path: Path, raising: dict[str, Any], kind: str
) -> None:
    def build(streams: Mapping[str, Stream]) -> Stream:
        if kind == "keyed":
            return process(streams["clicks"], ["user"], raising["keyed"], output="limit INT")
        return streams["clicks"].select(limit=F.udf(raising["of_a_column"], "int")("user"))

    with pytest.raises(PySparkException) as raised:
        run(surroundings, {"clicks": Input("user STRING", [[row("10", user="ann")]])}, build)
    error = as_fault(raised.value, "clicks", OwnCode((tmp_path,)))
    assert (error.given, str(error.at)) == ("ValueError: no limit for ann", f"{tmp_path}/raising.py:5")
