"""The Python daemon of an executor (``spark.python.daemon.module``) whose workers stop at a chosen point until a test lets them go on.

``PENSTOCK_TEST_TRAPS`` is a folder, see `tests.chaos.executor_traps`. Of all workers of all executors and attempts only one is caught, and
only once; the test then kills or freezes what it likes, the worker's own executor or another one.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pyspark.daemon
from pyspark import TaskContext

VARIABLE = "PENSTOCK_TEST_TRAPS"
_POLL_S = 0.01
_IMPORTED_ONCE = ("pandas", "pyarrow.parquet", "boto3", "psycopg", "redis", "confluent_kafka", "pydantic", "pyspark.worker")


@dataclass(frozen=True)
class Point:
    """A call of a method, or a batch of rows that goes into it.

    Args:
        module: of the method.
        name: of the method or function in its module, ``Class.method``.
        after: whether the call has ended by then.
        rows: whether it is the batches of rows that count, which are the last argument.
    """

    module: str
    name: str
    after: bool = False
    rows: bool = False


_CALLS, _PARTS, _FLOW = "penstock.jobs.blocks.calls", "penstock.jobs.sinks.parts", "tests.chaos.apps.flow"
_TOPIC, _KEYED = "penstock.jobs.sinks.transactions", "penstock.jobs.blocks.keyed.processor"
# In the order of a micro-batch.
POINTS = {
    "while it reads": Point(f"{_CALLS}.tasks", "CallTask.__call__", rows=True),
    "before a response": Point(_FLOW, "answered"),
    "after a response": Point(_FLOW, "answered", after=True),
    "before a page of the journal": Point(f"{_CALLS}.journal", "Journal._put"),
    "after a page of the journal": Point(f"{_CALLS}.journal", "Journal._put", after=True),
    "as a map task ends": Point(f"{_CALLS}.tasks", "CallTask.__call__", after=True, rows=True),
    "as rows are grouped": Point("penstock.jobs.blocks.joins.arrow_groups", "_by_group", after=True, rows=True),
    "in a keyed function": Point(_KEYED, "Processor.handleInputRows"),
    "in a timer": Point(_KEYED, "Processor.handleExpiredTimer"),
    "while it reads what the files get": Point(_PARTS, "PartWriter.__call__", rows=True),
    "before a chunk": Point(_PARTS, "_Object.finish"),
    "after a chunk": Point(_PARTS, "_Object.finish", after=True),
    "before a part is uploaded": Point(_PARTS, "Upload._send"),
    "after a part is uploaded": Point(_PARTS, "Upload._send", after=True),
    "between two files": Point(_PARTS, "Upload.finish", after=True),
    "while it reads what the topic gets": Point(_TOPIC, "TransactionWriter.__call__", rows=True),
    "in a transaction": Point(_TOPIC, "TransactionWriter._commit"),
    "after a transaction": Point(_TOPIC, "TransactionWriter._commit", after=True),
    "in a transaction of the table": Point("penstock.jobs.sinks.postgres", "Upsert._merge"),
    "after a transaction of the table": Point("penstock.jobs.sinks.postgres", "Upsert._write", after=True),
    "before the hashes": Point("penstock.jobs.sinks.redis", "Overwrite._write"),
    "after the hashes": Point("penstock.jobs.sinks.redis", "Overwrite._write", after=True),
}


def _task() -> dict[str, int]:
    """The running task and its attempt."""
    context = TaskContext.get()
    assert context is not None
    return {"stage": context.stageId(), "partition": context.partitionId(), "attempt": context.taskAttemptId()}


class _Trapped:
    """Stops a worker at the armed point."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def pass_by(self, name: str) -> str:
        """Called at every point; waits in the armed one, if the call is the chosen one.

        Returns:
            The trap that this worker has come out of; empty if it was in none.
        """
        try:
            armed = json.loads((self._folder / "armed").read_text(encoding="utf-8"))
        except FileNotFoundError:
            return ""
        trap: str = armed["id"]
        if armed["point"] != name:
            return ""
        if self._number(trap, armed["call"]) != armed["call"]:
            self._overtake(trap)
            return ""
        self._write(f"{trap}.caught", {"worker": os.getpid(), "executor": _parent(os.getppid()), **_task()})
        while not (self._folder / f"{trap}.released").exists():
            time.sleep(_POLL_S)
        return trap

    def done(self, trap: str) -> None:
        """Called once a worker has done what it was about to do when it was caught."""
        self._write(f"{trap}.done", {})

    def _number(self, trap: str, most: int) -> int:
        """The number of this call among those of all processes; beyond the chosen one they aren't counted."""
        for number in range(1, most + 1):
            with contextlib.suppress(FileExistsError):
                os.close(os.open(self._folder / f"{trap}.call-{number}", os.O_CREAT | os.O_EXCL))
                return number
        return most + 1

    def _overtake(self, trap: str) -> None:
        """Notes that another attempt of the caught worker's task has come as far."""
        try:
            caught = json.loads((self._folder / f"{trap}.caught").read_text(encoding="utf-8"))
        except FileNotFoundError:
            return
        own = _task()
        if own["attempt"] != caught["attempt"] and (own["stage"], own["partition"]) == (caught["stage"], caught["partition"]):
            (self._folder / f"{trap}.overtaken").touch()

    def _write(self, name: str, what: dict[str, Any]) -> None:
        temporary = self._folder / f"{name}.{os.getpid()}"
        temporary.write_text(json.dumps(what), encoding="utf-8")
        temporary.rename(self._folder / name)


def _parent(pid: int) -> int:
    # Source: proc(5), /proc/pid/stat.
    return int(Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1])


def _armed(module: ModuleType, trapped: _Trapped) -> None:
    for name, point in POINTS.items():
        if point.module == module.__name__:
            *owners, method = point.name.split(".")
            owner: Any = module
            for each in owners:
                owner = getattr(owner, each)
            setattr(owner, method, _watched(getattr(owner, method), name, point, trapped))


def _watched(original: Callable[..., Any], name: str, point: Point, trapped: _Trapped) -> Callable[..., Any]:
    if point.rows:
        return _reading(original, name, point, trapped)

    def before(*arguments: Any, **named: Any) -> Any:
        trap = trapped.pass_by(name)
        try:
            return original(*arguments, **named)
        finally:
            if trap:
                trapped.done(trap)

    def after(*arguments: Any, **named: Any) -> Any:
        result = original(*arguments, **named)
        if trap := trapped.pass_by(name):
            trapped.done(trap)
        return result

    return after if point.after else before


def _reading(original: Callable[..., Any], name: str, point: Point, trapped: _Trapped) -> Callable[..., Any]:
    def counted(batches: Iterable[Any]) -> Iterator[Any]:
        for batch in batches:
            if not point.after and (trap := trapped.pass_by(name)):
                trapped.done(trap)
            yield batch
        if point.after and (trap := trapped.pass_by(name)):
            trapped.done(trap)

    return lambda *arguments: original(*arguments[:-1], counted(arguments[-1]))


class _Arming(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Arms a module as it is imported: a worker imports only what its tasks need."""

    def __init__(self, trapped: _Trapped) -> None:
        self._trapped = trapped
        self._modules = {point.module for point in POINTS.values()}
        self._loaders: dict[str, Any] = {}

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> Any:
        if fullname not in self._modules or fullname in self._loaders:
            return None
        self._loaders[fullname] = None
        spec = importlib.util.find_spec(fullname)
        if spec is not None:
            self._loaders[fullname], spec.loader = spec.loader, self
        return spec

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        module: ModuleType | None = self._loaders[spec.name].create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        self._loaders[module.__name__].exec_module(module)
        _armed(module, self._trapped)


def main() -> None:
    """Runs Spark's daemon with armed workers."""
    # They would import these one by one: on a busy machine more seconds than all the rest of a micro-batch takes.
    for name in _IMPORTED_ONCE:
        importlib.import_module(name)
    worker = pyspark.daemon.worker

    def armed_worker(*arguments: Any) -> int:
        # The driver has such workers too, and no folder.
        if folder := os.environ.get(VARIABLE):
            sys.meta_path.insert(0, _Arming(_Trapped(Path(folder))))
        return worker(*arguments)

    setattr(pyspark.daemon, "worker", armed_worker)  # noqa: B010
    pyspark.daemon.manager()


if __name__ == "__main__":
    main()
