"""Tasks of the exactly-once topic sink: one transaction per task and micro-batch, which includes its mark.

The mark is an offset committed in the same transaction: the group is the sink's, the topic the sink's, the partition is the number of
the task, the offset the number of the micro-batch, and the metadata the token of the manifest. Records and mark are committed
atomically.

Two attempts at a share, by a task that was considered dead or by another driver, fence each other: the one that begins later aborts the
other's transaction, whose commit then fails. A failed attempt waits for a random moment and Spark runs it again; it finds the mark, or
is the later one itself. So one of them commits, and none can commit after the other has read the marks.
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from penstock.jobs.configuration.kafka_access import KafkaAccess
from penstock.jobs.kafka.security import client_settings
from penstock.jobs.sinks.parts import wrapped
from penstock.jobs.spec.requested_topics import MAX_RECORD_BYTES

if TYPE_CHECKING:
    import pyarrow as pa

Answer = TypeVar("Answer")

# Outcomes of a task's rows: written now, already written by an earlier attempt, different from the decided ones, or already written by a
# driver with another manifest.
WRITTEN, SKIPPED, DIFFERS, FOREIGN = "written", "skipped", "differs", "foreign"
OUTCOME_SCHEMA = "task long, outcome string, rows long, digest long, marked long"
CALL_S = 60.0
# Kafka protocol guide, "Error Codes": answers of a broker that has just started, or while the previous transaction is being ended.
_ASK_AGAIN = {
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
    KafkaError.CONCURRENT_TRANSACTIONS,
}
_BACKOFF_S = 0.1
# Errors of a producer that another one with the same transactional id has fenced.
_FENCED = {KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH}
# An attempt takes some tenths of a second: long enough for the other one to commit, whichever begins first.
_FENCED_PAUSE_S = 2.0
# The same partitioner as in Java's clients (librdkafka, CONFIGURATION.md, `partitioner`), so that a key keeps its partition whichever sink
# writes the topic.
_PARTITIONER = "murmur2_random"


@dataclass(frozen=True)
class Share:
    """The decided share of one task.

    Args:
        rows: number of rows.
        digest: sum of their hashes modulo 2^64, as a signed number.
    """

    rows: int
    digest: int


@dataclass(frozen=True)
class TransactionWriter:
    """Parameters of a task that writes its share; sent to the tasks.

    Args:
        access: access to the brokers.
        topic: topic to write.
        name: consumer group that holds the marks, and prefix of the transactional ids.
        timeout_ms: how long the brokers keep a transaction open, in milliseconds.
        batch: number of the micro-batch.
        token: token of the manifest.
        fresh: whether this attempt wrote the manifest, so that any mark of this or a later micro-batch must be its own.
        shares: task -> decided share.
        properties: Kafka client properties of the producer, name -> value.
    """

    access: KafkaAccess
    topic: str
    name: str
    timeout_ms: int
    batch: int
    token: str
    fresh: bool
    shares: dict[int, Share]
    properties: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Writes records and yields their outcome in the form of `OUTCOME_SCHEMA`.

        Args:
            batches: columns ``task`` (int, the same in all rows), ``key`` and ``value`` (text or null) and ``hash`` (long).
        """
        import pyarrow as pa

        filled = (batch for batch in batches if batch.num_rows)
        first = next(filled, None)
        if first is None:
            return
        task = int(first.column("task")[0].as_py())
        try:
            yield pa.RecordBatch.from_pylist([self._write(task, first, filled)])
        except KafkaException as error:
            if error.args[0].code() in _FENCED:
                time.sleep(random.uniform(0, _FENCED_PAUSE_S))
            raise

    def _write(self, task: int, first: pa.RecordBatch, more: Iterator[pa.RecordBatch]) -> dict[str, object]:
        producer = Producer(producer_settings(self.access, f"{self.name}.{task}", self.timeout_ms, self.properties))
        # From here on every earlier producer of this task is fenced: its open transaction is aborted, and it can commit no other. The mark
        # that is read next is therefore final.
        insist(lambda: producer.init_transactions(CALL_S))
        consumer = Consumer(consumer_settings(self.access, self.name))
        try:
            (mark,) = insist(lambda: consumer.committed([TopicPartition(self.topic, task)], timeout=CALL_S))
            if mark.offset >= self.batch:
                return self._marked(task, mark)
            return self._transaction(producer, consumer.consumer_group_metadata(), task, itertools.chain([first], more))
        finally:
            consumer.close()

    def _marked(self, task: int, mark: TopicPartition) -> dict[str, object]:
        """A mark of this micro-batch is from an earlier attempt or another run; a later one is from the run that took over."""
        ours = mark.metadata == self.token if mark.offset == self.batch else not self.fresh
        return _outcome(task, SKIPPED if ours else FOREIGN, marked=mark.offset)

    def _transaction(self, producer: Producer, group: object, task: int, batches: Iterable[pa.RecordBatch]) -> dict[str, object]:
        producer.begin_transaction()
        rows = digest = 0
        for batch in batches:
            if batch.column("task").unique().to_pylist() != [task]:
                raise AssertionError(f"rows of several tasks came to task {task}")
            self._produce(producer, batch)
            rows += batch.num_rows
            digest += sum(batch.column("hash").to_pylist())
        share = self.shares.get(task, Share(0, 0))
        if (rows, wrapped(digest)) != (share.rows, share.digest):
            insist(lambda: producer.abort_transaction(CALL_S))
            return _outcome(task, DIFFERS, rows, wrapped(digest))
        mark = TopicPartition(self.topic, task, self.batch, self.token)
        insist(lambda: producer.send_offsets_to_transaction([mark], group, CALL_S))
        self._commit(producer, task)
        return _outcome(task, WRITTEN, rows, wrapped(digest))

    def _commit(self, producer: Producer, task: int) -> None:
        """Records and mark are committed here."""
        insist(lambda: producer.commit_transaction(CALL_S))

    def _produce(self, producer: Producer, batch: pa.RecordBatch) -> None:
        for key, value in zip(batch.column("key").to_pylist(), batch.column("value").to_pylist(), strict=True):
            while True:
                try:
                    producer.produce(self.topic, value=value, key=key)
                    break
                except BufferError:
                    # The client's queue is full: serve it until records are sent. A failed delivery fails the commit.
                    producer.poll(0.1)
        producer.poll(0)


def producer_settings(
    access: KafkaAccess, transactional_id: str, timeout_ms: int, properties: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Settings of a transactional producer.

    Args:
        access: access to the brokers.
        transactional_id: its transactional id; the brokers allow one live producer for each.
        timeout_ms: how long the brokers keep a transaction open, in milliseconds.
        properties: Kafka client properties of the sink, name -> value.
    """
    return {
        "compression.type": "lz4",
        "linger.ms": 20,
        **(properties or {}),
        **client_settings(access),
        "transactional.id": transactional_id,
        "transaction.timeout.ms": timeout_ms,
        # The delivery time-out of a record must end before that of its transaction (librdkafka, CONFIGURATION.md).
        "message.timeout.ms": timeout_ms,
        "message.max.bytes": MAX_RECORD_BYTES,
        "partitioner": _PARTITIONER,
        "log_level": 0,
    }


def consumer_settings(access: KafkaAccess, group: str) -> dict[str, Any]:
    """Settings of a consumer that only reads the marks. It waits for marks of transactions that are about to end."""
    return {
        **client_settings(access),
        "group.id": group,
        "enable.auto.commit": False,
        "allow.auto.create.topics": False,
        "isolation.level": "read_committed",
        "log_level": 0,
    }


def insist(call: Callable[[], Answer]) -> Answer:
    """The result of a call, retried while the brokers answer that it is not available yet, for at most `CALL_S`."""
    until_s = time.monotonic() + CALL_S
    while True:
        try:
            return call()
        except KafkaException as error:
            fault: KafkaError = error.args[0]
            again = (fault.retriable() or fault.code() in _ASK_AGAIN) and not fault.fatal() and not fault.txn_requires_abort()
            if not again or time.monotonic() > until_s:
                raise
            time.sleep(_BACKOFF_S)


def _outcome(task: int, outcome: str, rows: int = 0, digest: int = 0, marked: int = -1) -> dict[str, object]:
    return {"task": task, "outcome": outcome, "rows": rows, "digest": digest, "marked": marked}
