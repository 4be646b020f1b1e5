"""The task's part of writing a topic exactly once: one transaction a task and micro-batch, with its mark inside.

The mark is an offset committed in the same transaction: group of the sink, topic of the sink, partition number of the task, offset number
of the micro-batch, and the manifest's token as its metadata. Records and mark are there together or not at all.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from penstock.jobs.configuration.kafka_access import KafkaAccess
from penstock.jobs.kafka.security import client_settings
from penstock.jobs.sinks.parts import wrapped
from penstock.jobs.spec.requested_topics import MAX_RECORD_BYTES

if TYPE_CHECKING:
    import pyarrow as pa

Answer = TypeVar("Answer")

# What becomes of a task's rows: written now, found written by an earlier try, not those that were decided, or found written by somebody
# who decided otherwise.
WRITTEN, SKIPPED, DIFFERS, FOREIGN = "written", "skipped", "differs", "foreign"
OUTCOME_SCHEMA = "task long, outcome string, rows long, digest long, marked long"
CALL_S = 60.0
# Kafka protocol guide, "Error Codes": what a broker says that has just started, or while a transaction before is being ended.
_ASK_AGAIN = {
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
    KafkaError.CONCURRENT_TRANSACTIONS,
}
_BACKOFF_S = 0.1
# The same partition for a key as Java's clients choose (librdkafka, CONFIGURATION.md, `partitioner`), so that it does not matter which
# sink a topic is written with.
_PARTITIONER = "murmur2_random"


@dataclass(frozen=True)
class Share:
    """What one task has to write, as it was decided.

    Args:
        rows: how many.
        digest: sum of their hashes modulo 2^64, as a signed number.
    """

    rows: int
    digest: int


@dataclass(frozen=True)
class TransactionWriter:
    """What a task needs to write its share; sent to the tasks.

    Args:
        access: to the brokers.
        topic: to write.
        name: of the consumer group that holds the marks; the transactional ids begin with it.
        timeout_ms: for how long the brokers keep a transaction open.
        batch: number of the micro-batch.
        token: of the manifest.
        fresh: whether this try has written the manifest, so that no mark of this micro-batch or a later one can be there but its own.
        shares: task -> what it has to write.
    """

    access: KafkaAccess
    topic: str
    name: str
    timeout_ms: int
    batch: int
    token: str
    fresh: bool
    shares: dict[int, Share]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Writes records and tells what became of them, as `OUTCOME_SCHEMA` has it.

        Args:
            batches: columns ``task`` (int, one and the same in all rows), ``key`` and ``value`` (text or null) and ``hash`` (long).
        """
        import pyarrow as pa

        filled = (batch for batch in batches if batch.num_rows)
        first = next(filled, None)
        if first is None:
            return
        task = int(first.column("task")[0].as_py())
        yield pa.RecordBatch.from_pylist([self._write(task, first, filled)])

    def _write(self, task: int, first: pa.RecordBatch, more: Iterator[pa.RecordBatch]) -> dict[str, object]:
        producer = Producer(producer_settings(self.access, f"{self.name}.{task}", self.timeout_ms))
        # From here on every earlier producer of this task is fenced: what it has open is aborted, and it commits nothing more. So the mark
        # that is read next is the last word.
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
        """A mark of this micro-batch is one of its earlier tries, or of another run; a later one is of the run that took over from us."""
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
        """Where records and mark come to be there."""
        insist(lambda: producer.commit_transaction(CALL_S))

    def _produce(self, producer: Producer, batch: pa.RecordBatch) -> None:
        for key, value in zip(batch.column("key").to_pylist(), batch.column("value").to_pylist(), strict=True):
            while True:
                try:
                    producer.produce(self.topic, value=value, key=key)
                    break
                except BufferError:
                    # The client's queue is full: let it send some of it. What could not be delivered fails the commit.
                    producer.poll(0.1)
        producer.poll(0)


def producer_settings(access: KafkaAccess, transactional_id: str, timeout_ms: int) -> dict[str, Any]:
    """Settings of a transactional producer.

    Args:
        access: to the brokers.
        transactional_id: of which the brokers let one producer live at a time.
        timeout_ms: for how long they keep a transaction open.
    """
    return {
        **client_settings(access),
        "transactional.id": transactional_id,
        "transaction.timeout.ms": timeout_ms,
        # A record that can't be delivered must be given up before its transaction is (librdkafka, CONFIGURATION.md).
        "message.timeout.ms": timeout_ms,
        "message.max.bytes": MAX_RECORD_BYTES,
        "partitioner": _PARTITIONER,
        "compression.type": "lz4",
        "linger.ms": 20,
        "log_level": 0,
    }


def consumer_settings(access: KafkaAccess, group: str) -> dict[str, Any]:
    """Settings of a consumer that reads nothing but the marks. It waits for marks of transactions that are about to end."""
    return {
        **client_settings(access),
        "group.id": group,
        "enable.auto.commit": False,
        "allow.auto.create.topics": False,
        "isolation.level": "read_committed",
        "log_level": 0,
    }


def insist(call: Callable[[], Answer]) -> Answer:
    """A call's answer, asked for again while the brokers say that they soon have one, for at most `CALL_S`."""
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
