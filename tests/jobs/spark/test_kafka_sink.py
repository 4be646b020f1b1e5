"""Topics as sinks: keys, tombstones, and exactly-once delivery despite failures."""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from penstock.jobs.configuration.kafka_access import KafkaAccess
from penstock.jobs.errors import BadDeclaration
from penstock.jobs.kafka.errors import BrokersUnreachable, TopicNotFound
from penstock.jobs.sinks import exactly_once_topics, topics
from penstock.jobs.sinks.errors import MarksDisagree, MarksExpired, ReplayDiffers, TransactionsRefused
from penstock.jobs.sinks.exactly_once_topics import ExactlyOnceTopic
from penstock.jobs.sinks.sink import Batch
from penstock.jobs.sinks.topics import Topic
from penstock.jobs.sinks.transactions import WRITTEN, producer_settings
from penstock.jobs.spec import KafkaSink
from penstock.jobs.storage.checkpoint import Checkpoint
from penstock.jobs.storage.errors import CheckpointDamaged
from penstock.scripts.local import kafka_topics
from tests.jobs.spark.running import CHECKPOINTS, Surroundings


class Killed(Exception):
    """Represents the end of the process at a chosen point."""


@dataclass(frozen=True)
class Target:
    """A topic of three partitions, and what a reader sees."""

    around: Surroundings
    topic: str = field(default_factory=lambda: f"t{uuid.uuid4().hex[:8]}")

    @property
    def access(self) -> KafkaAccess:
        return KafkaAccess(self.around.brokers)

    def sink(self, kind: type[Checkpoint] = Checkpoint, folder: str = "1", name: str = "out", **settings: Any) -> ExactlyOnceTopic:
        """A checked writer of one driver."""
        spec = KafkaSink.model_validate({"topic": self.topic, "guarantee": "exactly-once", **settings})
        checkpoint = kind(f"s3a://{CHECKPOINTS}/{self.topic}/{folder}")
        made = ExactlyOnceTopic(name, spec, self.access, "job", "0123abcd", checkpoint)
        made.check()
        return made

    def rows(self, *names: str, partitions: int = 2) -> DataFrame:
        """Rows with a name and an amount."""
        frame = self.around.session.createDataFrame([(name, len(name)) for name in names], "name string, amount int")
        return frame.repartition(partitions, "name")

    def write(self, sink: ExactlyOnceTopic, number: int, *names: str, partitions: int = 2) -> None:
        """A micro-batch."""
        sink.write(self.rows(*names, partitions=partitions), Batch(number, len(names), 0))

    def names(self) -> list[str]:
        """Records seen by a reader with read_committed, sorted."""
        return sorted(json.loads(message.value() or b"")["name"] for message in self.messages())

    def messages(self) -> list[Message]:
        """The committed records, by partition and offset."""
        return read_committed(self.around.brokers, self.topic)


def read_committed(brokers: str, topic: str) -> list[Message]:
    """All committed records of a topic: up to the last stable offsets."""
    consumer = Consumer(
        {
            "bootstrap.servers": brokers,
            "group.id": "penstock.reader",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
        }
    )
    try:
        left = set(consumer.list_topics(topic, timeout=30).topics[topic].partitions)
        consumer.assign([TopicPartition(topic, number, 0) for number in left])
        result: list[Message] = []
        while left:
            messages = consumer.consume(1, timeout=30)
            assert messages, "the end of the topic was not reached in time"
            left -= {message.partition() for message in messages if message.error()}
            result += [message for message in messages if not message.error()]
        return sorted(result, key=lambda message: (message.partition() or 0, message.offset() or 0))
    finally:
        consumer.close()


@pytest.fixture
def target(surroundings: Surroundings) -> Target:
    target = Target(surroundings)
    kafka_topics.create(surroundings.brokers, {target.topic: 3})
    return target


@contextmanager
def _killed(owner: object, name: str, *, after: bool = False) -> Iterator[None]:
    """Ends the driver before or after a call, by an error that is never caught, which leaves behind what a killed process leaves."""
    original = getattr(owner, name)

    def instead(*arguments: Any, **named: Any) -> None:
        if after:
            original(*arguments, **named)
        raise Killed

    with pytest.MonkeyPatch.context() as patch, pytest.raises(Killed):
        patch.setattr(owner, name, instead)
        yield


NAMES = [f"name-{number}" for number in range(20)]


def test_a_topic_gets_keys_nulls_and_tombstones(target: Target) -> None:
    frame = target.around.session.createDataFrame(
        [("one", 1, False), ("two", None, None), ("three", 3, True)], "name string, amount int, _deleted boolean"
    )
    for guarantee in ("at-least-once", "exactly-once"):
        spec = KafkaSink.model_validate({"topic": target.topic, "key": ["name"], "deletes": True})
        sink = Topic(spec, target.access) if guarantee == "at-least-once" else target.sink(key=["name"], deletes=True)
        sink.write(frame, Batch(0, 3, 0))
    counts = Counter((message.partition(), message.key(), message.value()) for message in target.messages())
    # Both sinks choose the same partition for a key.
    assert {(key, value): count for (_, key, value), count in counts.items()} == {
        (b"one", b'{"name":"one","amount":1}'): 2,
        (b"two", b'{"name":"two","amount":null}'): 2,
        (b"three", None): 2,
    }
    with pytest.raises(BadDeclaration, match="JOB-004"):
        target.sink(key=["nobody"]).write(frame, Batch(1, 3, 0))


def test_records_of_one_key_keep_their_order(target: Target) -> None:
    frame = target.around.session.range(300, numPartitions=1).select((F.col("id") % 3).alias("k"), "id")
    sink = target.sink(key=["k"])
    sink.write(frame, Batch(0, 300, 0))
    written = [json.loads(message.value() or b"") for message in target.messages()]
    for key in range(3):
        assert [row["id"] for row in written if row["k"] == key] == list(range(key, 300, 3))


History = tuple[tuple[int, bool, int | None], ...]


def test_records_of_a_key_and_time_end_with_the_last_one_and_for_updates_with_an_existing_one(target: Target) -> None:
    # Amount, whether it is deleted, second. A row that moves comes from two tasks, in any order.
    moves: History = ((2, False, 5), (1, True, 5), (0, False, 4))
    changes: dict[str, History] = {
        "value, then tombstone": ((0, False, 4), (2, False, 5), (1, False, 5), (9, True, 5)),
        "without time": ((0, False, None), (2, False, None), (1, False, None), (9, True, None)),
    }
    frames = {False: [*changes.items()], True: [("moves", moves)]}
    for letter in "ab":
        for updates, histories in frames.items():
            rows = [(f"{letter} {name} {n}", *change) for name, history in histories for change in history for n in range(9)]
            frame = target.around.session.createDataFrame(rows, "name string, amount int, _deleted boolean, second int")
            frame = (frame.repartition(4) if updates else frame).withColumn("_time", F.timestamp_seconds("second")).drop("second")
            exact = target.sink(folder=f"{updates}", name=f"out-{updates}", key=["name"], deletes=True)
            exact.updates = updates
            sink = Topic(exact.sink, target.access, updates) if letter == "a" else exact
            sink.write(frame, Batch(0, len(rows), 0))
    by_key: dict[str, list[int | None]] = {}
    for message in target.messages():
        key, value = message.key(), message.value()
        assert isinstance(key, bytes)
        by_key.setdefault(key.decode(), []).append(json.loads(value)["amount"] if value else None)
    wanted = {"moves": [0, None, 2], "value, then tombstone": [0, 2, 1, None], "without time": [0, 2, 1, None]}
    assert by_key == {f"{letter} {name} {number}": amounts for letter in "ab" for name, amounts in wanted.items() for number in range(9)}


@pytest.mark.on_executors("kafka")
def test_each_record_is_written_once_whichever_call_the_driver_dies_in(target: Target) -> None:
    """One sink through all the fixed points, a micro-batch each; every restart is a new writer and partitions the rows in another way."""
    points: list[tuple[object, str, bool]] = [
        (Checkpoint, "put_once", False),
        (Checkpoint, "put_once", True),
        (ExactlyOnceTopic, "_judge", False),
        (ExactlyOnceTopic, "write", True),
    ]
    calls: list[str] = []
    for number, (owner, name, after) in enumerate(points):
        calls += [f"{name} of {number}" for name in NAMES]
        with _killed(owner, name, after=after):
            target.write(target.sink(), number, *calls[-len(NAMES) :])
        target.write(target.sink(), number, *calls[-len(NAMES) :], partitions=1 + number % 3)
    assert target.names() == sorted(calls)


def test_a_committed_share_is_not_written_again_and_an_open_one_is_taken_over(target: Target, monkeypatch: Any) -> None:
    """The driver dies when one of its tasks has committed and another has sent its records without committing."""
    sink = target.sink()
    outcomes: list[list[Row]] = []
    with _killed(exactly_once_topics, "_repartitioned"):
        target.write(sink, 0, *NAMES)
    manifest = json.loads(sink.checkpoint.get("sinks/out/0.json") or "")
    first, second = manifest["shares"][0]["task"], manifest["shares"][1]["task"]
    repartitioned = exactly_once_topics._repartitioned

    def only_first(rows: DataFrame, tasks: int, **how: bool) -> DataFrame:
        return repartitioned(rows, tasks, **how).where(F.col("task") == first)

    with monkeypatch.context() as patch:
        # Only the first task's rows reach a writer, and it commits them.
        patch.setattr(exactly_once_topics, "_repartitioned", only_first)
        patch.setattr(ExactlyOnceTopic, "_judge", lambda self, rows, manifest: outcomes.append(rows))
        target.write(target.sink(), 0, *NAMES)
    assert [(row["task"], row["outcome"]) for row in outcomes[0]] == [(first, WRITTEN)]
    # The second one has an open transaction of a live worker.
    zombie = Producer(producer_settings(target.access, f"{sink.group}.{second}", 60_000))
    zombie.init_transactions(30)
    zombie.begin_transaction()
    zombie.produce(target.topic, value=b'{"name": "of a zombie"}')
    zombie.flush(30)
    target.write(target.sink(), 0, *NAMES)
    with pytest.raises(KafkaException):
        zombie.commit_transaction(30)
    target.write(target.sink(), 0, *NAMES)
    assert target.names() == sorted(NAMES)


def test_a_replay_with_other_rows_stops_the_job_and_writes_nothing(target: Target) -> None:
    target.write(target.sink(), 0, *NAMES)
    with pytest.raises(ReplayDiffers) as raised:
        target.write(target.sink(), 0, *NAMES, "one more")
    assert raised.value.need.startswith("the 20 rows of the first run")
    with pytest.raises(ReplayDiffers):
        target.write(target.sink(), 0)
    # Rows that change between counting and writing: the task detects it and aborts its transaction.
    changing = target.rows("a", "b").withColumn("name", F.udf(lambda _: uuid.uuid4().hex)("name"))
    with pytest.raises(ReplayDiffers):
        target.sink().write(changing, Batch(1, 2, 0))
    assert target.names() == sorted(NAMES)


def test_marks_of_another_copy_of_the_checkpoint_stop_the_job(target: Target) -> None:
    target.write(target.sink(), 0, *NAMES)
    with pytest.raises(MarksDisagree) as raised:
        target.write(target.sink(folder="copy"), 0, *NAMES)
    assert raised.value.code == "JOB-061" and "batch 0" in str(raised.value.given)
    assert target.names() == sorted(NAMES)


def test_a_driver_suspended_until_its_manifest_has_expired_writes_nothing(target: Target) -> None:
    """It wakes with more tasks than its successor had: the additional ones have no marks."""
    suspended, successor = target.sink(), target.sink()
    suspended.checkpoint.retained = successor.checkpoint.retained = 2
    successor.partitions = 1
    for number in range(4):
        target.write(successor, number, *NAMES)
    with pytest.raises(MarksDisagree) as raised:
        target.write(suspended, 0, *NAMES)
    assert (raised.value.code, raised.value.given) == ("JOB-061", "a manifest of batch 3")
    assert target.names() == sorted(4 * NAMES)
    target.write(successor, 4, "one more")


def test_a_micro_batch_cut_off_longer_ago_than_marks_are_kept_is_not_guessed_at(target: Target) -> None:
    target.write(target.sink(), 0, *NAMES)
    sink = target.sink()
    sink.marks_kept_ms = -1
    with pytest.raises(MarksExpired) as raised:
        target.write(sink, 0, *NAMES)
    assert raised.value.code == "JOB-063" and "20 rows" in raised.value.fix
    manifest = "sinks/out/0.json"
    sink.checkpoint.delete(manifest)
    sink.checkpoint.put_once(manifest, "")
    with pytest.raises(CheckpointDamaged) as damaged:
        target.write(target.sink(), 0, *NAMES)
    assert damaged.value.path == f"{sink.checkpoint.uri}/penstock/{manifest}"


def test_settings_that_the_brokers_do_not_allow_are_reported_before_the_query_starts(
    target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(TransactionsRefused) as raised:
        target.sink(transactionTimeout="20m")
    assert raised.value.code == "JOB-060"
    assert raised.value.need == "at most the brokers' transaction.max.timeout.ms, 900000 ms"
    other = Target(target.around)
    with pytest.raises(TopicNotFound):
        other.sink()
    at_least_once = KafkaSink(topic=other.topic)
    with pytest.raises(TopicNotFound, match=f"topic {other.topic}"):
        Topic(at_least_once, target.access).check()
    Topic(KafkaSink(topic=target.topic), target.access).check()
    monkeypatch.setattr(topics, "CALL_S", 0.2)
    with pytest.raises(BrokersUnreachable, match="JOB-001"):
        Topic(at_least_once, KafkaAccess("127.0.0.1:1")).check()


def test_readers_with_read_committed_see_nothing_of_an_empty_micro_batch_and_its_replay_is_empty_too(target: Target) -> None:
    target.write(target.sink(), 0)
    with pytest.raises(ReplayDiffers):
        target.write(target.sink(), 0, "late")
    assert target.messages() == []
