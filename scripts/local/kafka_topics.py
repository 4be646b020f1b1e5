"""Topics on a broker: created from the plan, filled from the local input, and read back."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

# Documented as the admin client's, but its typed package exports it only at run time.
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]
from confluent_kafka.cimpl import NewTopic

from penstock.jobs.local.recording import Record, Recorded
from penstock.jobs.spec.requested_topics import MAX_RECORD_BYTES
from penstock.scripts.errors import InputFailed, TopicsNotCreated
from penstock.sizing.errors import raise_all

_TIMEOUT_S = 30.0
_READ_AT_A_TIME = 10_000
_COLLECTED_FOR_S = 0.1
# The client's errors are raised; it would also log them to standard error, in the midst of a command's own output.
_QUIET = {"log_level": 0}
# librdkafka's RD_KAFKA_PARTITION_UA: the client chooses by key.
_ANY = -1


@dataclass(frozen=True)
class Fed:
    """What was written to a topic.

    Args:
        partitions: of the topic.
        records: number of records, without flush events.
        ends: partition -> the next offset after the written records.
        flush: positions (partition, offset) of the flush events.
    """

    partitions: int
    records: int
    ends: Mapping[int, int]
    flush: frozenset[tuple[int, int]]


# Topic settings that a single broker, or events with old timestamps, cannot have.
_NOT_HERE = {"retention.ms", "min.insync.replicas"}


def create(address: str, topics: Mapping[str, int], settings: Mapping[str, Mapping[str, str]] | None = None) -> None:
    """Creates topics with their partitions, one replica each.

    Args:
        address: of the broker.
        topics: name -> partitions.
        settings: name -> the spec's settings; a retention, and what a single broker cannot have, is left out.

    Raises:
        TopicsNotCreated: RUN-012, one for each topic that the broker rejected.
    """
    # Events have their own timestamps: a topic with retention by age would delete them at once.
    config = {"retention.ms": "-1", "max.message.bytes": str(MAX_RECORD_BYTES)}
    asked = {name: {key: value for key, value in some.items() if key not in _NOT_HERE} for name, some in (settings or {}).items()}
    wanted = [
        NewTopic(name, num_partitions=count, replication_factor=1, config={**asked.get(name, {}), **config})
        for name, count in topics.items()
    ]
    # Kept in a variable: a garbage-collected client drops its pending requests.
    admin = AdminClient({"bootstrap.servers": address, **_QUIET})
    created = admin.create_topics(wanted, operation_timeout=_TIMEOUT_S) if wanted else {}
    refused: list[TopicsNotCreated] = []
    for name, future in created.items():
        try:
            future.result()
        except KafkaException as error:
            fault: KafkaError = error.args[0]
            refused.append(
                TopicsNotCreated(
                    path=f"topic {name}",
                    given=fault.str(),
                    need="a name and number of partitions that the broker accepts",
                    fix="correct the spec",
                )
            )
    raise_all(refused)
    wait_for_leaders(admin, topics)


class Feeder:
    """Writes records to the topics of a broker.

    Whoever writes often keeps one: an idempotent producer asks for its id when it is made, when it has no connection yet, and then again
    after half a second. Source: librdkafka 2.16, rdkafka_idempotence.c, ``rd_kafka_idemp_pid_timer_restart``.

    Args:
        address: of the broker.
    """

    def __init__(self, address: str) -> None:
        settings = {
            "linger.ms": 20,
            "compression.type": "lz4",
            "acks": "all",
            "enable.idempotence": True,
            "message.max.bytes": MAX_RECORD_BYTES,
        }
        self.address = address
        self._producer = Producer({"bootstrap.servers": address, **settings, **_QUIET})

    def feed(self, topic: str, partitions: int, records: Iterable[Record], progress: Callable[[int], None]) -> Fed:
        """Writes records to a topic, each partition in the order given.

        Args:
            topic: its name.
            partitions: its number of partitions.
            records: what to write.
            progress: called periodically with the number written so far.

        Raises:
            InputFailed: RUN-013, the broker did not accept all of them.
        """
        try:
            return self._fed(topic, partitions, records, progress)
        except BaseException:
            # What was not sent must not follow later.
            self._producer.purge()
            raise

    def _fed(self, topic: str, partitions: int, records: Iterable[Record], progress: Callable[[int], None]) -> Fed:
        try:
            # The client would learn of partitions that were added since its last call only in minutes.
            self._producer.list_topics(topic, timeout=_TIMEOUT_S)
        except KafkaException as error:
            given, need = f"no response: {error.args[0].str()}", "a broker that accepts records"
            raise InputFailed(path=f"topic {topic}", given=given, need=need, fix="check the broker's log") from None
        writing = _Writing(topic)
        count = 0
        for count, record in enumerate(records, start=1):
            turn = record.partition if record.partition is not None else (None if record.key else count % partitions)
            _produce(self._producer, topic, record, turn, writing)
            if count % 1_000 == 0:
                self._producer.poll(0)
                progress(count)
        left = self._producer.flush(_TIMEOUT_S)
        if left or writing.failures:
            why = writing.failures[0] if writing.failures else "no response"
            given = f"{left + len(writing.failures)} of {count} records were rejected; {why}"
            raise InputFailed(path=f"topic {topic}", given=given, need="a broker that accepts them", fix="check the broker's log")
        progress(count)
        return Fed(partitions, count - len(writing.flush), writing.ends, frozenset(writing.flush))


def feed(address: str, topic: str, partitions: int, records: Iterable[Record], progress: Callable[[int], None]) -> Fed:
    """As `Feeder.feed`, of one that is not kept."""
    return Feeder(address).feed(topic, partitions, records, progress)


def read(address: str, topic: str, ends: Mapping[int, int] | None = None) -> list[Message]:
    """All of a topic's records, by partition and offset, read with a plain consumer.

    Args:
        address: of the broker.
        topic: its name.
        ends: partition -> the first offset not to read; by default the current end.
    """
    # A transaction ends with a control record that consumers do not see, so the end of a partition must be signalled.
    reading = {"enable.partition.eof": True, "isolation.level": "read_committed"}
    settings = {"group.id": "penstock.reader", "enable.auto.commit": False, "auto.offset.reset": "earliest", **reading}
    consumer = Consumer({"bootstrap.servers": address, **settings, **_QUIET})
    try:
        numbers = consumer.list_topics(topic, timeout=_TIMEOUT_S).topics[topic].partitions
        edges = {number: consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=_TIMEOUT_S) for number in numbers}
        until = {number: ends.get(number, 0) if ends is not None else last for number, (_, last) in edges.items()}
        todo = {number for number, (first, _) in edges.items() if until[number] > first}
        consumer.assign([TopicPartition(topic, number, edges[number][0]) for number in todo])
        return sorted(_consumed(consumer, todo, until), key=_place)
    finally:
        consumer.close()


def recorded(messages: Iterable[Message], flush: frozenset[tuple[int, int]]) -> list[Recorded]:
    """Records as a recording has them."""
    records = []
    for message in messages:
        place = _place(message)
        records.append(Recorded(*place, _bytes(message.key()), _bytes(message.value()), place in flush, message.timestamp()[1]))
    return records


class _Writing:
    """The broker's responses so far."""

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.ends: dict[int, int] = {}
        self.flush: set[tuple[int, int]] = set()
        self.failures: list[str] = []

    def answered(self, error: KafkaError | None, message: Message, *, flush: bool) -> None:
        partition, offset = message.partition(), message.offset()
        if error is not None or partition is None or offset is None:
            self.failures.append(error.str() if error else "an answer without a place")
            return
        self.ends[partition] = max(self.ends.get(partition, 0), offset + 1)
        if flush:
            self.flush.add((partition, offset))


def wait_for_leaders(admin: AdminClient, topics: Mapping[str, int]) -> None:
    """Waits until the leader of each partition answers: a topic that the broker has accepted, or a partition that was added, does not exist
    before. The broker names a leader before that one knows of it.

    Args:
        admin: client of the broker.
        topics: name -> partitions.

    Raises:
        TopicsNotCreated: RUN-012, not all of them have answered in time.
    """
    waiting = [TopicPartition(name, number) for name, count in topics.items() for number in range(count)]
    until_s = time.monotonic() + _TIMEOUT_S
    while waiting:
        errors = _errors_of_leaders(admin, waiting)
        if errors and time.monotonic() > until_s:
            need = f"leaders of all partitions within {_TIMEOUT_S:g} s"
            given = next(iter(errors.values())).str()
            raise TopicsNotCreated(path=", ".join(topics), given=given, need=need, fix="check the broker's log")
        waiting = list(errors)


def _errors_of_leaders(admin: AdminClient, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, KafkaError]:
    """Why the leaders of partitions do not say where these end."""
    errors: dict[TopicPartition, KafkaError] = {}
    end: Any = OffsetSpec
    asked = admin.list_offsets({partition: end.latest() for partition in partitions}, request_timeout=_TIMEOUT_S)
    for partition, answer in asked.items():
        try:
            answer.result()
        except KafkaException as error:
            errors[partition] = error.args[0]
    return errors


def _produce(producer: Producer, topic: str, record: Record, partition: int | None, writing: _Writing) -> None:
    def answered(error: KafkaError | None, message: Message) -> None:
        writing.answered(error, message, flush=record.flush)

    while True:
        try:
            producer.produce(
                topic,
                value=record.value,
                key=record.key,
                on_delivery=answered,
                partition=_ANY if partition is None else partition,
                # The client takes 0 for now.
                timestamp=record.timestamp_ms or 0,
            )
            return
        except BufferError:
            # The client's queue is full: let it send some of it.
            producer.poll(0.1)
        except KafkaException as error:
            given = f"a record of {len(record.value or b''):,} bytes: {error.args[0].str()}"
            raise InputFailed(
                path=f"topic {topic}", given=given, need="a record that the broker accepts", fix="correct the input"
            ) from None


def _consumed(consumer: Consumer, todo: set[int], until: Mapping[int, int]) -> Iterator[Message]:
    heard_s = time.monotonic()
    while todo:
        # The client collects until it has that many or the time is over; a long time would be waited for at the end of each topic.
        messages = consumer.consume(_READ_AT_A_TIME, timeout=_COLLECTED_FOR_S)
        if messages:
            heard_s = time.monotonic()
        elif time.monotonic() - heard_s > _TIMEOUT_S:
            raise InputFailed(path="kafka", need="all all records up to the end of the topic", fix="check the broker's log")
        for message in messages:
            if _ends_partition(message):
                todo.discard(message.partition() or 0)
                continue
            partition, offset = _place(message)
            if offset < until[partition]:
                yield message
            if offset >= until[partition] - 1:
                todo.discard(partition)


def _ends_partition(message: Message) -> bool:
    """Whether a message only signals the end of its partition."""
    fault = message.error()
    if fault is not None and fault.code() != KafkaError._PARTITION_EOF:
        raise InputFailed(path="kafka", given=fault.str(), need="all all records up to the end of the topic", fix="check the broker's log")
    return fault is not None


def _place(message: Message) -> tuple[int, int]:
    """Partition and offset of a message that was read or acknowledged."""
    partition, offset = message.partition(), message.offset()
    assert partition is not None
    assert offset is not None
    return partition, offset


def _bytes(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value
