"""A sink that keeps its rows, in the place of any sink of a spec."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from penstock.jobs.sinks.building import build
from penstock.jobs.sinks.kafka_records import records
from penstock.jobs.sinks.sink import Batch, BatchSink, SinkContext
from penstock.jobs.spec import KafkaSink, Sink, ToKafka
from penstock.jobs.stream.streams import ENVELOPE
from penstock.testing.plain_values import plain

# URI of the query's checkpoint, sink, micro-batch, rows.
Keep = Callable[[str, str, int, list[Any]], None]


@dataclass(frozen=True)
class KeptRows:
    """A sink that keeps its rows.

    Args:
        name: of the sink.
        checkpoint: URI of the query's checkpoint.
        keep: gets the rows of each micro-batch.
        topic: the sink, if it is one; its rows are formatted as its records.
        updates: whether a row replaces the earlier one with its key.
    """

    name: str
    checkpoint: str
    keep: Keep
    topic: KafkaSink | None
    updates: bool

    @classmethod
    def of(cls, name: str, sink: Sink, context: SinkContext, keep: Keep) -> BatchSink:
        """In the place of a sink, which is built too: what it refuses to be built from is an error here as well."""
        build(name, sink, context)
        topic = sink.kafka if isinstance(sink, ToKafka) else None
        return cls(name, context.checkpoint.uri, keep, topic, context.updates)

    def check(self) -> None:
        """Does nothing: there is no system to reach."""

    def idle(self, now_ms: int) -> None:
        """Does nothing: no rows are held back."""

    def write(self, rows: DataFrame, batch: Batch) -> None:
        """Keeps the rows of a micro-batch."""
        if self.topic is not None:
            found = [_value(row["key"], row["value"]) for row in records(self.topic, rows, updates=self.updates).collect()]
        else:
            found = [_columns(plain(row.asDict(recursive=True))) for row in rows.collect()]
        self.keep(self.checkpoint, self.name, batch.number, found)


def _value(key: str | None, value: str | None) -> Any:
    """A record's value; of one that deletes, its key."""
    if value is None:
        return {"key": key, "value": None}
    try:
        return json.loads(value)
    except ValueError:
        return value


def _columns(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in ENVELOPE}
