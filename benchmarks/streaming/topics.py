"""Topics of the benchmark: filled once, and read back by a reader that notes how far the rows have come."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable
from typing import Self

from confluent_kafka import Consumer, Producer

from benchmarks.streaming.workload import BROKEN, BROKEN_LINE, PARTITIONS, Input, Rows, canonical
from penstock.scripts.local import kafka_topics

_QUIET = {"log_level": 0}
_AT_A_TIME = 20_000
_COLLECTED_FOR_S = 0.1


def fill(brokers: str, topic: str, given: Input, records: int, progress: Callable[[int], None]) -> tuple[int, int]:
    """Creates a topic and writes an input to it, its records in turn to the partitions.

    Returns:
        How many records there are, and how many of them are broken.
    """
    kafka_topics.create(brokers, {topic: PARTITIONS})
    producer = Producer(
        {"bootstrap.servers": brokers, "linger.ms": 50, "compression.type": "lz4", "queue.buffering.max.messages": 1_000_000, **_QUIET}
    )
    count = broken = 0
    for count, value in enumerate(given.records(records), start=1):
        key = None if given.key is None else json.loads(value)[given.key].encode()
        _produce(producer, topic, value, key, count % PARTITIONS)
        broken += value in (BROKEN, BROKEN_LINE)
        if count % 100_000 == 0:
            progress(count)
    if left := producer.flush(300):
        raise RuntimeError(f"{left} of {count} records were not written to {topic}")
    return count, broken


def _produce(producer: Producer, topic: str, value: bytes, key: bytes | None, partition: int) -> None:
    while True:
        try:
            producer.produce(topic, value, key, partition)
            return
        except BufferError:
            producer.poll(0.1)


class Reader:
    """Reads what a contestant writes to a topic, from its first row on, until the end of the context.

    Args:
        brokers: ``host:port``.
        topic: an existing topic.
        seen: called with the number of rows so far whenever there are more.
    """

    def __init__(self, brokers: str, topic: str, seen: Callable[[int], None]) -> None:
        # Only what is committed counts.
        reading = {"isolation.level": "read_committed", "auto.offset.reset": "earliest", "enable.auto.commit": False}
        self._consumer = Consumer({"bootstrap.servers": brokers, "group.id": f"reader-{topic}", **reading, **_QUIET})
        self._consumer.subscribe([topic])
        self._seen = seen
        self._values: list[bytes] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self._consumer.close()

    def rows(self) -> Rows:
        """What it has read, as it is compared. Not parsed before the end: this process has to share the machine with the contestant."""
        return Counter(canonical(json.loads(value)) for value in self._values)

    def _read(self) -> None:
        while not self._ended.is_set():
            messages = self._consumer.consume(_AT_A_TIME, _COLLECTED_FOR_S)
            values: list[bytes] = [message.value() or b"" for message in messages if message.error() is None]
            if values:
                self._values += values
                self._seen(len(self._values))
