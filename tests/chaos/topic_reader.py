"""A reader of a topic with read_committed that looks all the time, and keeps what it saw."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from confluent_kafka import Consumer, TopicPartition


class TopicReader:
    """Reads each record once, when it is committed.

    Args:
        brokers: ``host:port``.
        topic: its name.
        field: of a row, by which it is known.
    """

    def __init__(self, brokers: str, topic: str, field: str) -> None:
        self.rows: Counter[str] = Counter()
        self.last: dict[str, Mapping[str, Any]] = {}
        self.faults: list[str] = []
        self._field = field
        settings = {"group.id": "chaos.reader", "enable.auto.commit": False, "isolation.level": "read_committed", "log_level": 0}
        self._consumer = Consumer({"bootstrap.servers": brokers, "enable.partition.eof": True, **settings})
        numbers = self._consumer.list_topics(topic, timeout=30).topics[topic].partitions
        self._consumer.assign([TopicPartition(topic, number, 0) for number in numbers])
        self._at_end: dict[int, bool] = dict.fromkeys(numbers, False)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._read)

    def __enter__(self) -> TopicReader:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Stops; what is there at the end has been read."""
        self._stop.set()
        self._thread.join()
        self._consumer.close()

    def _read(self) -> None:
        try:
            while not self._stop.is_set():
                self._take(0.2)
            self._at_end = dict.fromkeys(self._at_end, False)
            # The ends are told anew only where a reader comes to them anew.
            for place in self._consumer.position(self._consumer.assignment()):
                self._consumer.seek(TopicPartition(place.topic, place.partition, max(place.offset, 0)))
            while not all(self._at_end.values()):
                self._take(1)
        except Exception as error:
            self.faults.append(f"the reader failed: {error!r}")

    def _take(self, timeout_s: float) -> None:
        for message in self._consumer.consume(500, timeout=timeout_s):
            if message.error():
                self._at_end[message.partition() or 0] = True
                continue
            fields = json.loads(message.value() or b"")
            row = fields[self._field]
            self.last[row] = fields
            self.rows[row] += 1
            if self.rows[row] == 2:
                self.faults.append(f"row {row} was seen twice, the second time at {message.partition()}/{message.offset()}")
