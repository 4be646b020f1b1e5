"""Python's side of a Spark executor: ``spark.python.daemon.module``, which forks the Python workers that tasks run in.

Spark's own daemon has imported next to nothing when it forks, so that each worker imports PySpark, pandas, pyarrow and the blocks of its
operator for itself: seconds of CPU time and tens of MiB, for each Python operator of each task slot, and again after each failed task. This
one imports them before it forks. What is imported before is also left out of the garbage collection that Spark's daemon has each worker do
after each task.

Spark puts PySpark as an archive first on the workers' path, and Python keeps no bytecode of what it imports from archives. Where the same
PySpark lies unpacked on the path, the archive is left out.

A process must not fork while it has threads, and some libraries start one as they are imported, which is why Spark's daemon imports nothing
(SPARK-54456). This one keeps them from it, looks, and gives way to Spark's own daemon where there is a thread all the same.
"""

from __future__ import annotations

import gc
import importlib
import os
import random
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

MODULE = "penstock.jobs.python_daemon"
# What starts no thread as it is imported only where these say so. Sources: OpenBLAS's README, "Setting the number of threads using
# environment variables"; Arrow's "Environment Variables" and jemalloc's "background_thread". A task has one core anyway.
SINGLE_THREADED = {"OPENBLAS_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"}
# Seconds after which a daemon without workers ends; without it, none does. Spark keeps a daemon for each environment of Python workers
# until its executor ends, and a session has a new environment with each change of a job's app.
IDLE_S_VARIABLE = "PENSTOCK_DAEMON_IDLE_S"
_SPARKS_OWN = "pyspark.daemon"
_WORKERS_OF_TASKS = "pyspark.worker"
_THREADS = Path("/proc/self/task")
_PYSPARK, _PY4J = "pyspark.zip", "py4j-*-src.zip"
# The blocks with functions that workers run.
_OPERATORS = tuple(f"penstock.jobs.blocks.{blocks}" for blocks in ("calls", "joins", "keyed", "windows"))


def main() -> None:
    """Imports what workers need, and forks workers until Spark ends it; Spark's own daemon where that is not safe."""
    # Others only plan on the driver: they are few, and import less.
    if sys.argv[1:2] != [_WORKERS_OF_TASKS] or not _THREADS.exists():
        _give_way()
    for name, value in SINGLE_THREADED.items():
        os.environ.setdefault(name, value)
    sys.path[:] = without_archives(sys.path)
    preload()
    if len(list(_THREADS.iterdir())) > 1:
        _give_way()
    idle_s = os.environ.get(IDLE_S_VARIABLE)
    if idle_s is not None:
        _end_when_idle(float(idle_s))
    from pyspark import daemon

    daemon.manager()


def _end_when_idle(idle_s: float) -> None:
    """Ends this process once it has had no workers for a time. Spark then starts another one for its next task: where it can't connect to a
    daemon, it takes it for one that has quit.
    Source: Spark 4.3.0, PythonWorkerFactory.createThroughDaemon.

    Args:
        idle_s: seconds; it may be half as much again.
    """
    idle = 0

    def look(*_: object) -> None:
        nonlocal idle
        idle = 0 if _has_workers() else idle + 1
        if idle > 2:
            signal.setitimer(signal.ITIMER_REAL, 0)
            # Spark's daemon ends by it in order.
            os.kill(os.getpid(), signal.SIGTERM)

    signal.signal(signal.SIGALRM, look)
    # A forked worker does not inherit the timer.
    signal.setitimer(signal.ITIMER_REAL, idle_s / 2, idle_s / 2)


def _has_workers() -> bool:
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return False
    return True


def without_archives(path: Sequence[str]) -> list[str]:
    """A module search path without the archives of Spark's distribution that lie unpacked on it too.

    Args:
        path: as ``sys.path``.
    """
    return [entry for entry in path if not _is_unpacked(Path(entry), path)]


def _is_unpacked(entry: Path, path: Sequence[str]) -> bool:
    """Whether an entry is an archive of which the folder is on the path: ``python/lib/pyspark.zip`` is of what lies in ``python``, in the
    distribution of Spark, and in the package ``pyspark`` around ``python``, in PyPI's.
    """
    if entry.name == _PYSPARK:
        folders = (entry.parents[1], entry.parents[2].parent) if len(entry.parents) > 2 else ()
        return any(str(folder) in path and (folder / "pyspark" / "worker.py").is_file() for folder in folders)
    if entry.match(_PY4J):
        release = entry.name.removesuffix("-src.zip")
        return any(Path(folder, f"{release}.dist-info").is_dir() for folder in path)
    return False


def preload() -> None:
    """Imports what the workers of Penstock's operators use, in a way that lets them share it."""
    import numpy as np

    # pyarrow imports pandas with the first array that it makes.
    for name in ("pandas", "pyarrow", _WORKERS_OF_TASKS, "penstock.jobs.job", *_OPERATORS):
        importlib.import_module(name)
    # Forked, all workers would draw the same numbers. Python's own `random` takes care of itself.
    os.register_at_fork(after_in_child=lambda: np.random.seed(random.getrandbits(32)))
    # What the garbage collector looks at, it writes to: the page would no longer be shared.
    gc.collect()
    gc.freeze()


def _give_way() -> None:
    os.execv(sys.executable, [sys.executable, "-m", _SPARKS_OWN, *sys.argv[1:]])


if __name__ == "__main__":
    main()
