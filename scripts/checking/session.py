"""A Spark session in one local JVM, without a port to look at, whose log goes to a file."""

from __future__ import annotations

import logging
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException

from penstock.infra.app_packages import jars_conf
from penstock.jobs.driver import session as spark_session
from penstock.jobs.spec import State
from penstock.jobs.stream.task_errors import first_line
from penstock.scripts import layout
from penstock.scripts.errors import SparkNotStarted
from penstock.scripts.local.spark_cluster import fast_start

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# They log each expression that can't be analyzed, with a Java stack. Of PySpark 4.3.0, pyspark/errors/exceptions/base.py.
QUERY_LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")


@contextmanager
def analyzing(app_jars: Sequence[Path] = ()) -> Iterator[tuple[SparkSession, Path]]:
    """Context with a session and a folder for the files that stand for buckets. Afterwards its JVM ends.

    Args:
        app_jars: of the apps.

    Raises:
        PenstockError: TOOL-016, TOOL-020, the jars are missing; TOOL-050.
    """
    with tempfile.TemporaryDirectory(prefix="penstock-check-") as name, local_session("check", "local[1]", Path(name), app_jars) as session:
        for logger in QUERY_LOGGERS:
            logging.getLogger(logger).setLevel(logging.CRITICAL)
        yield session, Path(name)


@contextmanager
def local_session(
    name: str, master: str, folder: Path, app_jars: Sequence[Path] = (), more: Mapping[str, str] = MappingProxyType({})
) -> Iterator[SparkSession]:
    """Context with a session in a JVM of its own, which ends afterwards.

    Args:
        name: of the application.
        master: Spark's, on this machine.
        folder: for its files and its log.
        app_jars: of the apps.
        more: settings of Spark.

    Raises:
        PenstockError: TOOL-016, TOOL-020, the jars are missing; TOOL-050.
    """
    conf = {
        **spark_session.state_conf(State()),
        "spark.driver.extraClassPath": os.pathsep.join(str(jar) for jar in layout.spark_jars()),
        "spark.driver.extraJavaOptions": f'{fast_start()} "-Djava.io.tmpdir={folder}"',
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.ui.enabled": "false",
        **jars_conf(str(jar) for jar in app_jars),
        **more,
    }
    session = _started(name, master, conf, folder / "spark.log")
    try:
        yield session
    finally:
        end(session)


def _started(name: str, master: str, conf: Mapping[str, str], log: Path) -> SparkSession:
    interrupt = signal.getsignal(signal.SIGINT)
    try:
        with _output_to(log):
            return spark_session.build(name, master, conf)
    except (PySparkException, Py4JError, OSError) as error:
        last = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:]
        given, need = "; ".join([f"{type(error).__name__}: {first_line(error)}", *last]), "a Java that Spark supports, 17 or later"
        raise SparkNotStarted(path="java", given=given, need=need, fix="penstock doctor") from error
    finally:
        # PySpark's handler cancels the jobs of a session, which the verb outlives.
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, interrupt)


def end(session: SparkSession) -> None:
    """Stops the session and its JVM, whose memory a local run needs; PySpark starts another one for the next session."""
    gateway: Any = session.sparkContext._gateway
    session.stop()
    gateway.shutdown()
    SparkContext._gateway = SparkContext._jvm = None
    # PySpark's JVM ends when this pipe does.
    gateway.proc.stdin.close()
    gateway.proc.wait()


@contextmanager
def _output_to(log: Path) -> Iterator[None]:
    """Context in which the processes that are started write to a file what they would write to this one's output."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    kept = [os.dup(number) for number in (1, 2)]
    with log.open("ab") as file:
        for number in (1, 2):
            os.dup2(file.fileno(), number)
    try:
        yield
    finally:
        for number, copy in zip((1, 2), kept, strict=True):
            os.dup2(copy, number)
            os.close(copy)
