from __future__ import annotations

from typing import Any

import pytest

from benchmarks.streaming import topics
from benchmarks.streaming.workload import BROKEN, BROKEN_LINE
from benchmarks.streaming.workloads import WORKLOADS


class Broker:
    """Takes what a producer writes."""

    def __init__(self) -> None:
        self.values: list[bytes] = []

    def produce(self, topic: str, value: bytes, key: bytes | None, partition: int) -> None:
        self.values.append(value)

    def flush(self, _: float) -> int:
        return 0


@pytest.mark.parametrize(("name", "source", "broken"), [("tumbling", "impressions", 3), ("ads", "campaigns", 0), ("error_logs", "logs", 3)])
def test_records_that_do_not_parse_are_counted(name: str, source: str, broken: int, monkeypatch: pytest.MonkeyPatch) -> None:
    broker = Broker()
    monkeypatch.setattr(topics, "Producer", lambda _: broker)
    monkeypatch.setattr("penstock.scripts.local.kafka_topics.create", lambda *_: None)
    given: Any = WORKLOADS[name].inputs[source]
    assert topics.fill("broker", name, given, 3_500, lambda _: None) == (len(broker.values), broken)
    assert broker.values.count(BROKEN) + broker.values.count(BROKEN_LINE) == broken
