"""From a record's arrival at the broker to its row's: at fixed rates, and one micro-batch at a time."""

from __future__ import annotations

import json
import statistics
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from confluent_kafka import Consumer, Producer

_QUIET = {"log_level": 0}
# A record says when it was sent, by the clock that notes its row: all on one machine.
_LINE = "2025-04-05T12:00:00Z ERROR {sent_ns:019d} order {number} accepted"
_SENT = slice(27, 46)
_COLLECTED_FOR_S = 0.002
# Of fewer there is no hundredth.
_ROWS_LEAST = 100
# Sent together: a sleep is not exact to less.
_TICK_S = 0.01


@dataclass(frozen=True)
class Latency:
    """Milliseconds from sending a record until its row is read.

    Args:
        rate: records a second.
        rows: how many were measured.
        p50_ms: the median.
        p99_ms: one of a hundred took longer.
        longest_ms: the longest.
        wrong: why there are no figures; empty if there are.
    """

    rate: int
    rows: int
    p50_ms: float
    p99_ms: float
    longest_ms: float
    wrong: str = ""

    def said(self) -> str:
        """For people."""
        if self.wrong:
            return f"{self.rate:,} records/s: no figures, {self.wrong}"
        return f"{self.rate:,} records/s: p50 {self.p50_ms:,.0f} ms, p99 {self.p99_ms:,.0f} ms, longest {self.longest_ms:,.0f} ms"


def latency(rate: int, waits_ms: Sequence[float]) -> Latency:
    """The summary of what was measured at a rate."""
    if len(waits_ms) < _ROWS_LEAST:
        return no_latency(rate, f"only {len(waits_ms)} rows have come")
    hundredths = statistics.quantiles(waits_ms, n=100, method="inclusive")
    return Latency(rate, len(waits_ms), statistics.median(waits_ms), hundredths[98], max(waits_ms))


def no_latency(rate: int, wrong: str) -> Latency:
    """What stands for a rate at which nothing could be measured."""
    return Latency(rate, 0, 0.0, 0.0, 0.0, wrong)


class Sender:
    """Writes lines that are errors to a topic.

    Args:
        brokers: ``host:port``.
        topic: an existing topic.
        partitions: of the topic.
    """

    def __init__(self, brokers: str, topic: str, partitions: int) -> None:
        self._producer = Producer({"bootstrap.servers": brokers, "linger.ms": 0, **_QUIET})
        self._topic = topic
        self._partitions = partitions
        # Lines so far.
        self.sent = 0

    def send(self, count: int = 1) -> None:
        """Sends so many lines now."""
        for _ in range(count):
            self.sent += 1
            line = _LINE.format(sent_ns=time.monotonic_ns(), number=self.sent)
            self._producer.produce(self._topic, line.encode(), partition=self.sent % self._partitions)
        self._producer.poll(0)

    def send_at(self, rate: int, seconds: float) -> None:
        """Sends lines at a rate."""
        began, sent = time.monotonic(), 0
        while (passed := time.monotonic() - began) < seconds:
            due = int(passed * rate)
            self.send(due - sent)
            sent = due
            time.sleep(_TICK_S)
        self._producer.flush(60)


class Arrivals:
    """Notes when rows arrive, until the end of the context.

    Args:
        brokers: ``host:port``.
        topic: an existing topic.
    """

    def __init__(self, brokers: str, topic: str) -> None:
        reading = {
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 5,
        }
        self._consumer = Consumer({"bootstrap.servers": brokers, "group.id": f"arrivals-{topic}", **reading, **_QUIET})
        self._consumer.subscribe([topic])
        self._more = threading.Condition()
        self._waits_ms: list[float] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._ended.set()
        self._thread.join()
        self._consumer.close()

    def wait_for(self, rows: int, limit_s: float) -> list[float]:
        """Waits until there are so many rows, or the time is over; how long each of them took, in milliseconds, in the order of arrival."""
        with self._more:
            self._more.wait_for(lambda: len(self._waits_ms) >= rows, limit_s)
            return list(self._waits_ms)

    def _read(self) -> None:
        while not self._ended.is_set():
            messages = self._consumer.consume(10_000, _COLLECTED_FOR_S)
            now_ns = time.monotonic_ns()
            waits_ms = [(now_ns - _sent_ns(message.value())) / 1e6 for message in messages if message.error() is None]
            if waits_ms:
                with self._more:
                    self._waits_ms += waits_ms
                    self._more.notify_all()


def _sent_ns(value: bytes | None) -> int:
    return int(json.loads(value or b"")["line"][_SENT])
