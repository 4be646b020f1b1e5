"""Two attempts at one share of an exactly-once topic, against a real broker: each is suspended before each of its calls."""

from __future__ import annotations

import itertools
import json
import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import KafkaException

from penstock.jobs.configuration.kafka_access import KafkaAccess
from penstock.jobs.sinks import transactions
from penstock.jobs.sinks.parts import wrapped
from penstock.jobs.sinks.transactions import SKIPPED, WRITTEN, Share, TransactionWriter
from penstock.scripts.local import kafka_topics
from penstock.scripts.local.kafka_broker import KafkaBroker
from tests.jobs.spark.test_kafka_sink import read_committed

# init_transactions, the marks, send_offsets_to_transaction, commit_transaction.
CALLS = 4
# At which call one is suspended, and at which the other one then is (0: at none); every second pair, which has each of them.
PAIRS = list(itertools.product(range(1, CALLS + 1), range(CALLS + 1)))[::2]
# Spark's default of spark.task.maxFailures.
ATTEMPTS = 4


@dataclass
class Attempt:
    """A task in a thread of its own, suspended before one of its calls of the brokers.

    Args:
        writer: the task.
        rows: ids of its records.
        at: number of the call, from 1; 0 for never.
    """

    writer: TransactionWriter
    rows: list[str]
    at: int = 0
    stopped: threading.Event = field(default_factory=threading.Event)
    go: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)
    outcomes: list[str] = field(default_factory=list)
    _calls: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def start(self) -> Attempt:
        """Runs until it is suspended, or to its end."""
        threading.Thread(target=self._run, daemon=True).start()
        while not (self.ended.wait(0.01) or self.stopped.is_set()):
            pass
        return self

    def wake(self) -> Attempt:
        """Runs on, to its end."""
        self.go.set()
        assert self.ended.wait(120)
        return self

    def before_a_call(self) -> None:
        if next(self._calls) == self.at:
            self.stopped.set()
            assert self.go.wait(120)

    def _run(self) -> None:
        LOCAL.attempt = self
        try:
            for _ in range(ATTEMPTS):
                try:
                    self.outcomes += [row["outcome"] for out in self.writer([_records(self.rows)]) for row in out.to_pylist()]
                    return
                except KafkaException as error:
                    self.outcomes.append(error.args[0].name())
        finally:
            self.ended.set()


LOCAL = threading.local()


def _records(rows: list[str]) -> pa.RecordBatch:
    values = [json.dumps({"name": name}) for name in rows]
    columns = {"task": [0] * len(rows), "key": rows, "value": values, "hash": list(range(len(rows)))}
    return pa.RecordBatch.from_pydict(columns)


@dataclass(frozen=True)
class Topic:
    """A topic, and the tasks of its sinks: each has marks of its own."""

    brokers: str
    name: str = field(default_factory=lambda: f"t{uuid.uuid4().hex[:8]}")

    def writer(self, sink: str, batch: int, rows: list[str], *, fresh: bool) -> TransactionWriter:
        """A task's writer."""
        shares = {0: Share(len(rows), wrapped(sum(range(len(rows)))))}
        group = f"penstock.job.{self.name}.{sink}"
        return TransactionWriter(KafkaAccess(self.brokers), self.name, group, 60_000, batch, f"manifest {batch}", fresh, shares)

    def names(self) -> list[str]:
        """The committed records."""
        return sorted(json.loads(message.value() or b"")["name"] for message in read_committed(self.brokers, self.name))


@pytest.fixture
def topic(kafka: KafkaBroker, monkeypatch: pytest.MonkeyPatch) -> Topic:
    original = transactions.insist

    def insist(call: Callable[[], Any]) -> Any:
        LOCAL.attempt.before_a_call()
        return original(call)

    monkeypatch.setattr(transactions, "insist", insist)
    made = Topic(kafka.address)
    kafka_topics.create(kafka.address, {made.name: 3})
    return made


def _together(topic: Topic, at: int, live_at: int, rows: list[str]) -> list[Attempt]:
    """Both write the same share of a micro-batch: the one that wrote the manifest, and the one that takes over."""
    zombie = Attempt(topic.writer(rows[0], 0, rows, fresh=True), rows, at).start()
    live = Attempt(topic.writer(rows[0], 0, rows, fresh=False), rows, live_at).start()
    return [zombie.wake(), live.wake()]


def test_two_drivers_that_write_one_share_commit_it_once_wherever_one_interrupts_the_other(topic: Topic) -> None:
    rows = {case: [f"{case}-{number}" for number in range(3)] for case in PAIRS}
    with ThreadPoolExecutor(6) as pool:
        ended = dict(zip(PAIRS, pool.map(lambda case: _together(topic, case[0], case[1], rows[case]), PAIRS), strict=True))
    for case, attempts in ended.items():
        # Each ends well within the attempts that Spark makes, one by writing.
        last = [attempt.outcomes[-1] for attempt in attempts]
        assert sorted(last) == [SKIPPED, WRITTEN], (case, [attempt.outcomes for attempt in attempts])
    assert topic.names() == sorted(name for some in rows.values() for name in some)
    fenced = [attempt.outcomes for attempts in ended.values() for attempt in attempts if len(attempt.outcomes) > 1]
    assert len(fenced) > 4, "some were interrupted"


def _older(topic: Topic, at: int, live_at: int, rows: list[str]) -> list[Attempt]:
    """A task of micro-batch 0 is suspended, which another attempt commits; it wakes within micro-batch 1."""
    zombie = Attempt(topic.writer(rows[0], 0, rows[:2], fresh=True), rows[:2], at).start()
    Attempt(topic.writer(rows[0], 0, rows[:2], fresh=False), rows[:2]).start()
    live = Attempt(topic.writer(rows[0], 1, rows[2:], fresh=True), rows[2:], live_at).start()
    return [zombie.wake(), live.wake()]


def test_a_task_of_an_earlier_micro_batch_that_wakes_writes_nothing_and_stops_nobody(topic: Topic) -> None:
    rows = {case: [f"{case}-{number}" for number in range(4)] for case in PAIRS}
    with ThreadPoolExecutor(6) as pool:
        ended = dict(zip(PAIRS, pool.map(lambda case: _older(topic, case[0], case[1], rows[case]), PAIRS), strict=True))
    for case, (zombie, live) in ended.items():
        assert live.outcomes[-1] == WRITTEN, (case, live.outcomes)
        assert WRITTEN not in zombie.outcomes, (case, zombie.outcomes)
    assert topic.names() == sorted(name for some in rows.values() for name in some)
