"""What every contestant of a benchmark is given: topics, and the rows that must come out."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

PARTITIONS = 4
BEGIN_MS = 1_743_854_400_000
# Later than any window: the record behind the last one of a partition that closes what is open.
FLUSH_MS = BEGIN_MS + 30 * 24 * 3_600_000
# What is between the brackets of a broken record is lost, as after a truncated write.
BROKEN = b'{"broken'

Rows = Counter[str]
Output = Literal["topic", "files", "redis"]


@dataclass
class Input:
    """A topic's records, and how to read them.

    Args:
        schema: Spark DDL of the JSON records; ``""`` for lines of text.
        time: the field with the event time in epoch milliseconds; None without event time.
        records: records, a seed's worth of them -> their values, in the order of a partition's offsets, each with its partition.
        key: the field that is also the record's key, for a compacted topic; None without keys.
    """

    schema: str
    time: str | None
    records: Callable[[int], Iterator[bytes]]
    key: str | None = None


@dataclass
class Workload:
    """One job that every contestant runs.

    Args:
        name: its name.
        what: what it does, in a few words for the report.
        inputs: source -> its input; the one that is counted comes first.
        expected: records of the first input -> the rows that must come out.
        app: module of Penstock's app.
        app_inputs: settings of the sources in Penstock's spec beyond the topic, by source.
        parameters: of Penstock's app.
        flink: SQL of PyFlink, see `flink_sql`; None where SQL has no counterpart.
        output: what the rows are written to.
        trigger: at which intervals, in Spark's words; by default as fast as it can.
        records: of the first input, for a full run.
        bounded_by: rows of a micro-batch at most, as a share of the records.
    """

    name: str
    what: str
    inputs: Mapping[str, Input]
    expected: Callable[[int], Rows]
    app: str
    records: int
    parameters: Mapping[str, Any] = field(default_factory=dict)
    app_inputs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    flink: str | None = None
    output: Output = "topic"
    trigger: str = "1ms"
    bounded_by: float = 1 / 12


def row(**fields: Any) -> str:
    """A row in the form in which answers are compared."""
    return canonical(fields)


def canonical(fields: Mapping[str, Any]) -> str:
    """JSON with sorted keys."""
    return json.dumps(fields, sort_keys=True, ensure_ascii=False)
