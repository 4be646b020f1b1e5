"""What every contestant of a benchmark is given: topics, and the rows that must come out."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

PARTITIONS = 4
BEGIN_MS = 1_743_854_400_000
# Later than any window: the record behind the last one of a partition that closes what is open.
FLUSH_MS = BEGIN_MS + 30 * 24 * 3_600_000
# What is between the brackets of a broken record is lost, as after a truncated write.
BROKEN = b'{"broken'
# A line that is not UTF-8.
BROKEN_LINE = b"\xff\xfebroken"
# One record in so many is broken.
_BROKEN_EVERY = 1_000
# How far a record may arrive before or after its turn; most jobs wait ten seconds for late ones.
_JITTER_MS = 2_000

Rows = Counter[str]
Output = Literal["topic", "files", "redis"]
Backend = Literal["memory", "rocksdb"]


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
        trigger: at which intervals, as in a spec; by default as fast as it can.
        side_outputs: names of the topics beside the rows, in the app.
        service: name of the app's connection to the benchmark's HTTP service; None: it calls none.
        records: of the first input, for a full run.
        bounded_by: rows of a micro-batch at most, as a share of the records.
        either_backend: whether it has state that may be in memory or in RocksDB.
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
    side_outputs: tuple[str, ...] = ("errors", "late")
    service: str | None = None
    bounded_by: float = 1 / 12
    either_backend: bool = False


def row(**fields: Any) -> str:
    """A row in the form in which answers are compared."""
    return canonical(fields)


def canonical(fields: Mapping[str, Any]) -> str:
    """JSON with sorted keys; a field without a value is left out, as some write it and others do not."""
    return json.dumps({name: value for name, value in fields.items() if value is not None}, sort_keys=True, ensure_ascii=False)


def moments(records: int, seconds: float, seed: int) -> Iterator[tuple[int, random.Random]]:
    """The event time of each record, evenly over the time with some jitter; and a source of chance."""
    random_ = random.Random(seed)
    for number in range(records):
        yield BEGIN_MS + int(number * seconds * 1000 / records) + random_.randrange(_JITTER_MS), random_


def closed(made: Iterator[bytes], flush: bytes) -> Iterator[bytes]:
    """The records, some of them broken, and one behind the last of each partition that closes all windows."""
    for number, value in enumerate(made):
        yield value if is_kept(number) else BROKEN
    yield from [flush] * PARTITIONS


def is_kept(number: int) -> bool:
    """Whether the record with this number is not broken."""
    return number % _BROKEN_EVERY != _BROKEN_EVERY - 1


def iso(moment_ms: int) -> str:
    """ISO-8601 in UTC, to the millisecond."""
    return datetime.fromtimestamp(moment_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
