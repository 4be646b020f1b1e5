"""A session of Spark in this process for batch queries, with the settings of the benchmark's contestants."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from benchmarks.streaming.contestants.place import Place
from penstock.scripts import layout


@contextmanager
def batch_session(place: Place) -> Iterator[SparkSession]:
    """A session, stopped at the end.

    Args:
        place: whose settings it has.
    """
    os.environ.update(PYSPARK_PYTHON=sys.executable, PYTHONPATH=str(layout.ROOT), PYTHONSAFEPATH="1")
    builder = SparkSession.builder.master("local[2]").config("spark.sql.session.timeZone", "UTC")
    for name, value in place.spark_conf().items():
        builder = builder.config(name, value)
    session = builder.config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    try:
        yield session
    finally:
        session.stop()


def jvm(session: SparkSession) -> int:
    """The process of a session's JVM; this one also has the broker's and PyFlink's below it."""
    gateway = session.sparkContext._gateway
    assert gateway is not None
    return int(gateway.proc.pid)
