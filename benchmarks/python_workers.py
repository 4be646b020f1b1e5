"""CPU time and memory of a Spark executor's Python workers, forked by Spark's own daemon and by Penstock's:
``python -m benchmarks.python_workers [--rounds N] [--workers N]``.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from penstock.jobs import python_daemon
from penstock.scripts import layout

_DAEMONS = {"Spark's": "pyspark.daemon", "Penstock's": python_daemon.MODULE}
_KIB = 1024
# Source: proc(5), smaps_rollup. Its proportional share of a page is 1/n where n processes have it.
_MEMORY = "Pss:"


def main() -> None:
    """Prints the median of each, with the minimum and the maximum."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--workers", type=int, default=4, help="at a time, as an executor with so many task slots has for one operator")
    parser.add_argument("--daemon", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.daemon:
        print(json.dumps(_measured(options.daemon, options.workers)))
        return
    measured: dict[str, list[dict[str, float]]] = {name: [] for name in _DAEMONS}
    for _ in range(options.rounds):
        for name, module in _DAEMONS.items():
            measured[name].append(_run(module, options.workers))
    print(f"{'daemon':<12} {'CPU of a worker, s':>24} {f'memory of {options.workers} and the daemon, MiB':>36}")
    for name, rounds in measured.items():
        print(f"{name:<12} {_shown([one['cpu_s'] for one in rounds], 2):>24} {_shown([one['mib'] for one in rounds], 0):>36}")


def _shown(values: list[float], digits: int) -> str:
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def _run(module: str, workers: int) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.python_workers", "--daemon", module, "--workers", str(workers)]
    lines = subprocess.run(command, check=True, cwd=layout.ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    measured: dict[str, float] = json.loads(lines.splitlines()[-1])
    return measured


def _measured(module: str, workers: int) -> dict[str, float]:
    """One stage of so many tasks at the same time."""
    os.environ.update(PYSPARK_PYTHON=sys.executable, PYTHONPATH=str(layout.ROOT), PYTHONSAFEPATH="1")
    builder = (
        SparkSession.builder.master(f"local[{workers}]").config("spark.python.daemon.module", module).config("spark.ui.enabled", "false")
    )
    session = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1").getOrCreate()
    rows = session.range(workers, numPartitions=workers).mapInArrow(_described, "worker long, daemon long, cpu_s double").collect()
    processes = {row.worker for row in rows} | {row.daemon for row in rows}
    memory_mib = sum(_memory_kib(pid) for pid in processes) / _KIB
    session.stop()
    return {"cpu_s": statistics.mean(row.cpu_s for row in rows), "mib": memory_mib}


def _memory_kib(pid: int) -> int:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(_MEMORY))


def _described(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Of the worker that has passed a batch of rows on: it stays, for the next task."""
    import resource

    for batch in batches:
        pa.array(batch.column(0).to_pylist())
    used = resource.getrusage(resource.RUSAGE_SELF)
    row = {"worker": os.getpid(), "daemon": os.getppid(), "cpu_s": used.ru_utime + used.ru_stime}
    yield pa.RecordBatch.from_pylist([row])


if __name__ == "__main__":
    main()
