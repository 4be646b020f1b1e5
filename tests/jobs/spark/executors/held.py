"""A step that reports each of its tasks, and holds them while the test wants it: what happens meanwhile, happens between two stages."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.jobs.spark.outside import note

_LIMIT_S = 180


@dataclass(frozen=True)
class Passage:
    """Passes rows of a stage on; sent to Spark's workers.

    Args:
        folder: of the lock and of the notes.
        name: of the stage, for the notes.
        held: whether its tasks wait while `closed`.
        partition: of the one task that waits; None: all do.
    """

    folder: str
    name: str
    held: bool = False
    partition: int | None = None

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """The same rows."""
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        note(f"{self.folder}/{self.name}", f"{context.partitionId()} {_executor()}")
        if self.held and self.partition in (None, context.partitionId()):
            with Path(f"{self.folder}/gate").open("a") as gate:
                fcntl.flock(gate, fcntl.LOCK_SH)
        yield from batches

    def tasks(self) -> list[tuple[int, int]]:
        """Partition and executor's process id of every task so far, failed ones included."""
        file = Path(f"{self.folder}/{self.name}")
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        return [(int(partition), int(pid)) for partition, pid in map(str.split, lines)]


@contextmanager
def closed(folder: str) -> Iterator[Callable[[], None]]:
    """Holds the tasks of a folder's passages until the function that this yields is called, or until the block ends."""
    with Path(f"{folder}/gate").open("a") as gate:
        fcntl.flock(gate, fcntl.LOCK_EX)
        yield lambda: fcntl.flock(gate, fcntl.LOCK_UN)


def until(condition: Callable[[], object], what: str) -> None:
    """Waits for evidence."""
    limit_s = time.monotonic() + _LIMIT_S
    while not condition():
        assert time.monotonic() < limit_s, f"waited in vain for {what}"
        time.sleep(0.05)


def _executor() -> int:
    """The process id of the executor: the parent of the daemon that forks the workers. Source: proc(5), after the name the parent."""
    return int(Path(f"/proc/{os.getppid()}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1])
