"""Memory of a Spark executor by what its job uses of Python: ``python -m benchmarks.executor_memory [--slots N] [--bytes N]``.

One executor in a process of its own (``local-cluster``), with Penstock's Python daemon, runs micro-batches of strings while its memory is
watched: of the JVM besides its heap, of the daemon, and of its Python workers. Linux only. `penstock.sizing.load.python_workers` plans
with the results; docs/sizing.md has them.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from penstock.jobs import python_daemon
from penstock.scripts import layout

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

KINDS = ("none", "udf", "pandas", "arrow", "keyed", "client")
_EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"
_BATCHES, _HEAP_MIB, _EVERY_S, _KIB = 5, 1024, 0.2, 1024


def main() -> None:
    """Prints the peaks of each kind as a row of Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--slots", type=int, default=4)
    parser.add_argument("--bytes", type=int, default=200, help="of the string of a row")
    parser.add_argument("--rows", type=int, default=20_000, help="of a task in a micro-batch")
    parser.add_argument("--kinds", nargs="*", default=KINDS, choices=KINDS)
    parser.add_argument("--measure", choices=KINDS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(_measured(options.measure, options)))
        return
    print("| Python | workers | a worker, MiB | the daemon, MiB | the JVM besides its heap, MiB |\n|---|---|---|---|---|")
    for kind in options.kinds:
        one = _in_a_process(kind, options)
        print(f"| {kind} | {one['workers']:.0f} | {one['worker_mib']:.0f} | {one['daemon_mib']:.0f} | {one['jvm_mib']:.0f} |", flush=True)


def _in_a_process(kind: str, options: argparse.Namespace) -> dict[str, float]:
    """Measured in a process of its own: Spark's JVM ends with it."""
    sizes = ["--slots", str(options.slots), "--bytes", str(options.bytes), "--rows", str(options.rows)]
    command = [sys.executable, "-m", "benchmarks.executor_memory", "--measure", kind, *sizes]
    lines = subprocess.run(command, check=True, cwd=layout.ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    measured: dict[str, float] = json.loads(lines.splitlines()[-1])
    return measured


def _measured(kind: str, options: argparse.Namespace) -> dict[str, float]:
    os.environ.update(PYSPARK_PYTHON=sys.executable, PYTHONPATH=str(layout.ROOT), PYTHONSAFEPATH="1", SPARK_LOCAL_HOSTNAME="localhost")
    os.environ.update(AWS_DEFAULT_REGION="us-east-1", AWS_ACCESS_KEY_ID="none", AWS_SECRET_ACCESS_KEY="none")
    with tempfile.TemporaryDirectory() as folder:
        session = _session(options.slots, folder)
        with _Watch() as watch:
            _run(session, kind, options, folder)
        session.stop()
    return watch.peaks


def _session(slots: int, folder: str) -> SparkSession:
    builder = SparkSession.builder.master(f"local-cluster[1,{slots},{_HEAP_MIB}]")
    settings = {
        "spark.executor.memory": f"{_HEAP_MIB}m",
        # All pages of the heap count from the start, so that what is above it is not heap.
        "spark.executor.extraJavaOptions": f"-Xms{_HEAP_MIB}m -XX:+AlwaysPreTouch",
        "spark.python.daemon.module": python_daemon.MODULE,
        "spark.sql.shuffle.partitions": str(slots),
        "spark.sql.streaming.stateStore.providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
        "spark.sql.streaming.stateStore.rocksdb.boundedMemoryUsage": "true",
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": folder,
        "spark.worker.dir": folder,
    }
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _run(session: SparkSession, kind: str, options: argparse.Namespace, folder: str) -> None:
    """Some micro-batches, each with this many rows in each task."""
    source = session.readStream.format("rate-micro-batch").option("rowsPerBatch", options.slots * options.rows)
    rows = source.option("numPartitions", options.slots).load()
    # Each row has its own text, as records have.
    text = F.substring(F.repeat(F.sha2(F.col("value").cast("string"), 256), -(-options.bytes // 64)), 1, options.bytes)
    rows = rows.select((F.col("value") % 10_000).alias("key"), text.alias("text"))
    query = _operator(rows, kind).writeStream.format("noop").option("checkpointLocation", f"{folder}/checkpoint").outputMode("append")
    running = query.trigger(processingTime="1 second").start()
    while running.isActive and (running.lastProgress is None or running.lastProgress.batchId < _BATCHES):
        running.awaitTermination(1)
    running.stop()


def _operator(rows: DataFrame, kind: str) -> DataFrame:
    if kind == "none":
        return rows.withColumn("text", F.upper("text"))
    if kind == "udf":
        return rows.withColumn("text", F.udf(str.upper, "string")("text"))
    if kind == "pandas":
        return rows.mapInPandas(_upper_in_pandas, "key long, text string")
    if kind == "arrow":
        return rows.mapInArrow(_upper_in_arrow, "key long, text string")
    if kind == "client":
        return rows.mapInArrow(_uploaded, "key long, text string")
    return rows.groupBy("key").transformWithState(_Counted(), "key long, count long, text string", "Append", "None")


def _upper_in_pandas(frames: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    for frame in frames:
        yield frame.assign(text=frame["text"].str.upper())


def _upper_in_arrow(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """By way of Python's objects, as functions of a team have them."""
    import pyarrow

    for batch in batches:
        rows = [{**row, "text": row["text"].upper()} for row in batch.to_pylist()]
        yield pyarrow.RecordBatch.from_pylist(rows, schema=batch.schema)


def _uploaded(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """As a task of a file sink: a client of S3, which is not called, and a part of an upload with its copy in the request."""
    from penstock.jobs.sinks.parts import PART_BYTES
    from penstock.jobs.storage.s3 import shared_client

    opened = shared_client()
    part = bytearray(opened.meta.region_name.encode())
    for batch in batches:
        for row in batch.to_pylist():
            part += json.dumps(row).encode()
        yield batch
    part += bytes(max(0, PART_BYTES - len(part)))
    request = bytes(part)
    assert len(request) >= PART_BYTES


class _Counted(StatefulProcessor):
    """Counts the rows of a key."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._count = handle.getValueState("count", "count long")

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803 (names of Spark)
        given = list(rows)
        stored = self._count.get()
        count = (stored[0] if stored else 0) + len(given)
        self._count.update((count,))
        yield Row(key=key[0], count=count, text=given[-1].text)

    def close(self) -> None:
        """Nothing to close."""


class _Watch:
    """The highest memory of the executor's processes, until the end of the context."""

    def __init__(self) -> None:
        self.peaks = {"workers": 0.0, "worker_mib": 0.0, "daemon_mib": 0.0, "jvm_mib": 0.0}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> _Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(_EVERY_S):
            for name, value in _now().items():
                self.peaks[name] = max(self.peaks[name], value)


def _now() -> dict[str, float]:
    """Executor -> daemon -> workers, each a child of the one before."""
    parents = {pid: parent for pid in (int(folder.name) for folder in Path("/proc").glob("[0-9]*")) if (parent := _parent(pid)) is not None}
    own = _descendants(os.getpid(), parents)
    executors = [pid for pid in own if _EXECUTOR in _command(pid) and "java" in _command(pid)[:200]]
    daemons = [pid for pid in own if parents[pid] in executors]
    workers = [pid for pid in own if parents[pid] in daemons]
    private = [_mib(pid, "Private_Clean", "Private_Dirty") for pid in workers]
    return {
        "workers": float(len(workers)),
        "worker_mib": max(private, default=0.0),
        # With the pages that its workers share with it, each counted once.
        "daemon_mib": sum(_mib(pid, "Pss") for pid in (*daemons, *workers)) - sum(private),
        "jvm_mib": sum(_mib(pid, "Pss") for pid in executors) - _HEAP_MIB * len(executors),
    }


def _descendants(root: int, parents: dict[int, int]) -> list[int]:
    found, todo = [], [root]
    while todo:
        pid = todo.pop()
        children = [child for child, parent in parents.items() if parent == pid]
        found += children
        todo += children
    return found


def _parent(pid: int) -> int | None:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[1])
    except OSError:
        return None


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _mib(pid: int, *fields: str) -> float:
    """The sum of some fields. Source: proc(5), smaps_rollup."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.split(":")[0] in fields) / _KIB


if __name__ == "__main__":
    main()
