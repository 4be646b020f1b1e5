"""A driver that kills itself at a chosen point: ``python -m tests.chaos.doomed_driver``, with the arguments of
`penstock.jobs.driver.runtime`.

``PENSTOCK_TEST_DOOM`` is JSON: ``point`` (one of `POINTS` or `WORKER_POINTS`), ``call`` (at which of its calls, from 1) and ``sink``
(`CARELESS`, `CARELESS_TASKS`, or nothing), ``action`` (`FREEZE`, or nothing: the driver stops at the point and goes on when it is woken),
``lease`` (`TAKE`: it takes a lease that is held; `IGNORE_LOSS`: it also goes on without one).
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import sys
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from botocore.client import BaseClient
from confluent_kafka import Producer

from penstock.jobs.driver import runtime
from penstock.jobs.driver.micro_batch import MicroBatches
from penstock.jobs.sinks import building, exactly_once_topics
from penstock.jobs.sinks.exactly_once_topics import ExactlyOnceTopic
from penstock.jobs.sinks.files import Files, _Staged
from penstock.jobs.sinks.part_log import Manifest
from penstock.jobs.sinks.parts import PartWriter
from penstock.jobs.sinks.publishing import Publisher
from penstock.jobs.sinks.sink import Batch
from penstock.jobs.sinks.transactions import TransactionWriter
from penstock.jobs.storage.checkpoint import Checkpoint
from penstock.jobs.storage.lease import Lease, LeaseFile

VARIABLE = "PENSTOCK_TEST_DOOM"
CARELESS, CARELESS_TASKS = "careless", "careless tasks"
FREEZE = "freeze"
TAKE, IGNORE_LOSS = "take", "ignore loss"


@dataclass(frozen=True)
class Point:
    """A method's call, before or after which the driver dies; calls that `counts` refuses are not counted."""

    owner: type
    method: str
    after: bool = False
    counts: Callable[..., bool] = lambda *_: True


def _decision(*arguments: Any) -> bool:
    """The checkpoint's identity and the topic's manifests are written once too."""
    return bool(arguments[1].startswith("sinks/out/log/"))


def _share(*arguments: Any) -> bool:
    return bool(arguments[1].startswith("sinks/topic/"))


def _with_files(*arguments: Any) -> bool:
    return bool(arguments[1])


POINTS = {
    "before the sinks": Point(MicroBatches, "_write"),
    "before the manifest": Point(Checkpoint, "put_once", counts=_decision),
    "after the manifest": Point(Checkpoint, "put_once", after=True, counts=_decision),
    "before the files are published": Point(Publisher, "publish", counts=_with_files),
    "before the files are composed": Point(Publisher, "compose", counts=_with_files),
    "between two files": Point(Publisher, "complete", after=True),
    "before the chunks are taken away": Point(Publisher, "forget"),
    "after the topic's manifest": Point(Checkpoint, "put_once", after=True, counts=_share),
    "after the topic": Point(ExactlyOnceTopic, "write", after=True),
    "after the sinks": Point(MicroBatches, "_write", after=True),
    "before the record": Point(Checkpoint, "record"),
    "after the record": Point(Checkpoint, "record", after=True),
    "before a call of S3": Point(BaseClient, "_make_api_call"),
    "after a call of S3": Point(BaseClient, "_make_api_call", after=True),
}
WORKER_POINTS = {"in a transaction": False, "after a transaction": True}


class Careless(Files):
    """A sink as one would write it without thinking of crashes: each try publishes files of its own, then notes that it has."""

    def _stem(self, batch: int) -> str:
        return f"{super()._stem(batch)}-{uuid.uuid4().hex[:8]}"

    def _decision(self, last: Manifest | None, staged: _Staged, batch: Batch) -> Manifest:
        decided = super()._decision(last, staged, batch)
        self._publisher.publish(decided.parts)
        return decided


class CarelessTasks(Files):
    """A sink as one would write it without thinking of tasks that run again: each attempt writes where readers see it."""

    def _chunk_writer(self, batch: int) -> PartWriter:
        return replace(super()._chunk_writer(batch), bucket=self.bucket, folder=self.sink.path)

    def _decision(self, last: Manifest | None, staged: _Staged, batch: Batch) -> Manifest:
        return super()._decision(last, replace(staged, chunks=()), batch)


@dataclass(frozen=True)
class DoomedWriter(TransactionWriter):
    """A task that takes its driver with it."""

    driver: int = 0
    after: bool = False
    signal: int = signal.SIGKILL

    def _commit(self, producer: Producer, task: int) -> None:
        if self.after:
            super()._commit(producer, task)
        os.kill(self.driver, self.signal)
        # Without a word to the brokers.
        os.kill(os.getpid(), self.signal)
        if not self.after:
            super()._commit(producer, task)


def main() -> int:
    """Arms the driver and runs it."""
    doom = json.loads(os.environ[VARIABLE])
    if "sink" in doom:
        # By setattr, for the name is the module's own import.
        setattr(building, "Files", {CARELESS: Careless, CARELESS_TASKS: CarelessTasks}[doom["sink"]])  # noqa: B010
    _bypass(doom.get("lease"))
    point, end = doom.get("point"), signal.SIGSTOP if doom.get("action") == FREEZE else signal.SIGKILL
    if point in WORKER_POINTS:
        _arm_worker(doom["call"], end, after=WORKER_POINTS[point])
    elif point:
        _arm(POINTS[point], doom["call"], end)
    return runtime.main(sys.argv[1:])


def _bypass(lease: str | None) -> None:
    if lease in (TAKE, IGNORE_LOSS):
        setattr(LeaseFile, "_free", lambda *_: True)  # noqa: B010
    if lease == IGNORE_LOSS:
        setattr(Lease, "_lose", lambda *_: None)  # noqa: B010


def _arm_worker(call: int, end: signal.Signals, *, after: bool) -> None:
    calls = itertools.count(1)

    def writer(**named: Any) -> TransactionWriter:
        # Not only of that call: a micro-batch whose rows the driver before has committed commits nothing.
        if next(calls) >= call:
            return DoomedWriter(**named, driver=os.getpid(), after=after, signal=end)
        return TransactionWriter(**named)

    setattr(exactly_once_topics, "TransactionWriter", writer)  # noqa: B010


def _arm(point: Point, call: int, end: signal.Signals) -> None:
    original, calls = getattr(point.owner, point.method), itertools.count(1)

    def doomed(*arguments: Any, **named: Any) -> Any:
        last = point.counts(*arguments) and next(calls) == call
        if last and not point.after:
            os.kill(os.getpid(), end)
        result = original(*arguments, **named)
        if last and point.after:
            os.kill(os.getpid(), end)
        return result

    setattr(point.owner, point.method, doomed)


if __name__ == "__main__":
    sys.exit(main())
