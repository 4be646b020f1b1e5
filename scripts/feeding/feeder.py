"""Writes records to topics at a steady rate, until it is stopped or all of them are written."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from penstock.jobs.configuration.kafka_access import KafkaAccess
from penstock.jobs.kafka.security import client_settings
from penstock.jobs.local.recording import Record
from penstock.jobs.spec.requested_topics import MAX_RECORD_BYTES
from penstock.scripts.feeding.errors import RecordsRefused

_FLUSH_S = 30.0
# How long a wait for the next record may take to see that it is stopped.
_LOOK_S = 0.1
_SHOWN_EVERY_S = 0.5
_SETTINGS = {"linger.ms": 5, "compression.type": "lz4", "acks": "all", "enable.idempotence": True, "message.max.bytes": MAX_RECORD_BYTES}
# librdkafka's RD_KAFKA_PARTITION_UA: the client chooses by key.
_ANY = -1


class Topic(NamedTuple):
    """A topic with its partitions, and the records to be written to it."""

    name: str
    partitions: int
    records: Iterator[Record]


class Feeder:
    """A feed.

    Args:
        access: to the brokers.
        topics: take turns.
        rate: records per second, of all topics together.
        shown: called now and then with the number of records written so far.
    """

    def __init__(self, access: KafkaAccess, topics: list[Topic], rate: float, shown: Callable[[int], None]) -> None:
        self._producer = Producer({**client_settings(access), **_SETTINGS, "log_level": 0})
        self._topics, self._rate, self._shown = topics, rate, shown
        self._stopped = threading.Event()
        self._written: Counter[str] = Counter()
        self._failures: list[str] = []

    def stop(self) -> None:
        """Ends the feed after the record that is being written."""
        self._stopped.set()

    @property
    def written(self) -> Mapping[str, int]:
        """Topic -> records that the brokers have acknowledged."""
        return {topic.name: self._written[topic.name] for topic in self._topics}

    def run(self, records: int | None = None) -> None:
        """Feeds the topics.

        The n-th record is written n / rate seconds after the first: one that was held up does not delay those after it.

        Args:
            records: number of records to write; None: until `stop`.

        Raises:
            RecordsRefused: FEED-003; what was acknowledged is `written`.
        """
        try:
            self._feed(records)
        finally:
            # Also where a generator has raised: what is written before counts.
            left = self._producer.flush(_FLUSH_S)
        if left or self._failures:
            given = f"{left + len(self._failures)} records; {self._failures[0] if self._failures else 'no response'}"
            names = ", ".join(topic.name for topic in self._topics)
            raise RecordsRefused(path=names, given=given, need="brokers that accept them", fix="check the brokers")

    def _feed(self, records: int | None) -> None:
        began_s, shown_s, number, open_ = time.monotonic(), 0.0, 0, list(self._topics)
        while open_ and number != records and self._waited(began_s + number / self._rate):
            topic = open_[number % len(open_)]
            record = next(topic.records, None)
            if record is None:
                open_.remove(topic)
                continue
            self._write(topic, record, number // len(open_))
            number += 1
            if time.monotonic() - shown_s > _SHOWN_EVERY_S:
                shown_s = time.monotonic()
                self._shown(number)

    def _waited(self, until_s: float) -> bool:
        """Waits for a time; whether the feed goes on."""
        while not self._stopped.is_set() and not self._failures:
            left_s = until_s - time.monotonic()
            self._producer.poll(max(0.0, min(left_s, _LOOK_S)))
            if left_s <= 0:
                return True
        return False

    def _write(self, topic: Topic, record: Record, turn: int) -> None:
        partition = record.partition if record.partition is not None else (_ANY if record.key else turn % topic.partitions)
        while True:
            try:
                self._producer.produce(
                    topic.name,
                    value=record.value,
                    key=record.key,
                    on_delivery=self._answered,
                    partition=partition,
                )
                return
            except BufferError:
                # The client's queue is full: let it send some of it.
                self._producer.poll(_LOOK_S)
            except KafkaException as error:
                self._failures.append(error.args[0].str())
                return

    def _answered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._failures.append(error.str())
        else:
            self._written[str(message.topic())] += 1
