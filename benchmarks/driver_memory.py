"""Memory of a driver by its tasks and queries: ``python -m benchmarks.driver_memory [--tasks N]``.

What stays on the heap after a full collection: of a task that Spark's UI retains, of one of a stage that runs, and of a query. Beside the
heap: the JVM, and the Python process of the app. Linux only. `penstock.sizing.driver` plans with the results; docs/sizing.md has them.
"""

from __future__ import annotations

import argparse
import importlib
import os
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

_MIB, _KIB = 1024 * 1024, 1024
_COLLECTIONS = 3
_HEAP_MIB = 2048


def main() -> None:
    """Prints each of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=2_000, help="of a stage")
    parser.add_argument("--stages", type=int, default=10)
    parser.add_argument("--queries", type=int, default=4)
    options = parser.parse_args()
    # The modules of a driver, which its Python process has loaded.
    importlib.import_module("penstock.jobs.driver.runtime")

    os.environ["SPARK_LOCAL_HOSTNAME"] = "localhost"
    builder = SparkSession.builder.master("local[2]").config("spark.driver.memory", f"{_HEAP_MIB}m")
    builder = builder.config("spark.driver.extraJavaOptions", f"-Xms{_HEAP_MIB}m -XX:+AlwaysPreTouch")
    builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    session = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    _stage(session, options.tasks)
    base = _live_bytes(session)
    print(f"live heap of a session after one stage: {base / _MIB:.0f} MiB")
    for _ in range(options.stages):
        _stage(session, options.tasks)
    retained = _live_bytes(session)
    print(f"a retained task: {(retained - base) / (options.stages * options.tasks):.0f} bytes")
    print(f"a task of a stage that runs: {_of_a_running_task(session, 10 * options.tasks, retained):.0f} bytes")
    before = _live_bytes(session)
    with tempfile.TemporaryDirectory() as folder:
        queries = [_query(session, f"{folder}/{number}") for number in range(options.queries)]
        for query in queries:
            while query.lastProgress is None or query.lastProgress.batchId < 3:
                query.awaitTermination(1)
        print(f"a query: {(_live_bytes(session) - before) / options.queries / _MIB:.1f} MiB")
        for query in queries:
            query.stop()
    jvm: Any = session.sparkContext._jvm
    pid = jvm.java.lang.ProcessHandle.current().pid()
    print(f"the JVM besides its heap: {_pss_mib(int(pid)) - _HEAP_MIB:.0f} MiB; the Python process: {_pss_mib(os.getpid()):.0f} MiB")
    session.stop()


def _stage(session: SparkSession, tasks: int) -> None:
    session.range(0, tasks, 1, tasks).write.format("noop").mode("overwrite").save()


def _of_a_running_task(session: SparkSession, tasks: int, before: float) -> float:
    """Soon after the stage has begun, when next to none of its tasks has ended."""
    running = threading.Thread(target=_stage, args=(session, tasks))
    running.start()
    tracker = session.sparkContext.statusTracker()
    while not (active := tracker.getActiveStageIds()):
        time.sleep(0.01)
    live = _live_bytes(session)
    info = tracker.getStageInfo(active[0])
    done = info.numCompletedTasks if info else 0
    running.join()
    print(f"  ({done} of {tasks} tasks had ended)")
    return (live - before) / tasks


def _query(session: SparkSession, folder: str) -> Any:
    rows = session.readStream.format("rate").option("rowsPerSecond", 10).load().groupBy("value").count()
    writer = rows.writeStream.format("noop").outputMode("update").option("checkpointLocation", folder)
    return writer.trigger(processingTime="1 second").start()


def _live_bytes(session: SparkSession) -> float:
    jvm: Any = session.sparkContext._jvm
    for _ in range(_COLLECTIONS):
        jvm.java.lang.System.gc()
    return float(jvm.java.lang.management.ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed())


def _pss_mib(pid: int) -> float:
    """Proportional set size. Source: proc(5), smaps_rollup."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) / _KIB for line in lines if line.startswith("Pss:"))


if __name__ == "__main__":
    main()
