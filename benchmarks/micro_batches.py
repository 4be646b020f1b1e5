"""A stateless test of three micro-batches with the fixture `micro_batches`, beside a query of plain Structured Streaming that does as much:
``python -m benchmarks.micro_batches [--tests N]``.

Both filter lines of a log and collect the rows of three micro-batches, in turn and in one Spark session; each test begins with an empty
checkpoint. Plain PySpark has no side outputs, no event time and no driver that checks the app.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from penstock.scripts.checking.session import local_session
from penstock.scripts.layout import ROOT
from penstock.testing.job_under_test import JobUnderTest
from penstock.testing.local_checkpoint import FILE_MANAGER
from penstock.testing.plugin import SESSION_CONF

SPEC = ROOT / "jobs" / "specs" / "error_logs.yaml"
# Of each of the three micro-batches.
LINES = ["2026-11-24T10:00:00Z INFO ready", "2026-11-24T10:00:01Z ERROR refused"]
MICRO_BATCHES = 3
WARM_UP = 3

Test = Callable[[SparkSession, Path], list[list[str]]]


def with_fixture(session: SparkSession, folder: Path) -> list[list[str]]:
    """What a test with the fixture does. Returns the lines of each micro-batch."""
    with ExitStack() as held:
        output = JobUnderTest(SPEC, session, folder, app_path=[ROOT], held=held).run(*[LINES] * MICRO_BATCHES)
    return [[row["line"] for row in batch["out"]] for batch in output.batches]


def with_plain_pyspark(session: SparkSession, folder: Path) -> list[list[str]]:
    """The same with Spark's own file source and ``foreachBatch``."""
    (folder / "input").mkdir(parents=True)
    for number in range(MICRO_BATCHES):
        (folder / "input" / f"{number}.txt").write_text("\n".join(LINES), encoding="utf-8")
    session.conf.set("spark.sql.streaming.checkpointFileManagerClass", FILE_MANAGER)
    written: list[list[Row]] = []

    def keep(frame: DataFrame, number: int) -> None:
        written.append(frame.collect())

    lines = session.readStream.option("maxFilesPerTrigger", 1).text(str(folder / "input"))
    errors = lines.select(F.upper("value").alias("line")).filter("line LIKE '%ERROR%'")
    options = {"checkpointLocation": str(folder / "checkpoint")}
    errors.writeStream.options(**options).trigger(availableNow=True).foreachBatch(keep).start().awaitTermination()
    return [[row["line"] for row in rows] for rows in written]


TESTS: dict[str, Test] = {"micro_batches": with_fixture, "plain PySpark": with_plain_pyspark}


def main() -> None:
    """Prints a table: seconds and CPU seconds of a test, with the minimum, the median and the maximum.

    Raises:
        SystemExit: a test gives other rows.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tests", type=int, default=20, help="of each kind, after a warm-up (default: 20)")
    tests = parser.parse_args().tests
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in TESTS}
    with tempfile.TemporaryDirectory() as scratch, _session(Path(scratch)) as session:
        session.sparkContext.setLogLevel("ERROR")
        for number in range(WARM_UP + tests):
            for name, test in TESTS.items():
                taken[name].append(_measured(test, session, Path(scratch) / f"{number} {name}"))
    for name, measured in taken.items():
        wall, cpu = zip(*measured[WARM_UP:], strict=True)
        print(f"{name:<14} {_spread(wall)} s   CPU {_spread(cpu)} s")


def _session(folder: Path) -> AbstractContextManager[SparkSession]:
    """As the fixture `penstock_session`."""
    return local_session("benchmark", "local[2]", folder, more=SESSION_CONF)


def _measured(test: Test, session: SparkSession, folder: Path) -> tuple[float, float]:
    began_s, cpu_s = time.monotonic(), _cpu_s(session)
    rows = test(session, folder)
    measured = time.monotonic() - began_s, _cpu_s(session) - cpu_s
    if rows != [[line.upper() for line in LINES if "ERROR" in line]] * MICRO_BATCHES:
        raise SystemExit(f"{test.__name__} gives {rows}")
    return measured


def _cpu_s(session: SparkSession) -> float:
    """CPU time of this process and of Spark's JVM, which has no children in these tests. Source: proc(5)."""
    jvm = session._jvm
    assert jvm is not None
    fields = Path(f"/proc/{jvm.java.lang.ProcessHandle.current().pid()}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return time.process_time() + (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _spread(seconds: tuple[float, ...]) -> str:
    return f"{min(seconds):5.2f} {statistics.median(seconds):5.2f} {max(seconds):5.2f}"


if __name__ == "__main__":
    main()
