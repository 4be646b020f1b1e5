"""Rows that come into a killed job without end, and what its output must be."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.jobs.local.recording import Record
from tests.chaos.apps.states import BLOCKS

# One in so many rows is repeated at once, one in so many is followed by a record that does not parse.
_REPEATED, _BROKEN = 4, 10
# A record that does not parse, too large to come to the driver with a task's result (64 KiB, `TaskRows.INLINE_BYTES`).
_DOES_NOT_PARSE = b"broken " * 12_000
_KEYS = 7
# 2025-04-05T12:00:00Z
_BEGIN_S = 1_743_854_400


def at(second: float) -> str:
    """A moment of the rows' day."""
    whole = int(second)
    return f"2025-04-05T{12 + whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}.{round(second % 1 * 1000):03d}Z"


def _record(partition: int, **fields: Any) -> Record:
    return Record(json.dumps(fields).encode(), partition=partition)


@dataclass
class FlowRows:
    """The input of `tests.chaos.apps.flow`: some rows twice, at once or in the next micro-batch, and some records broken.

    Args:
        topic: of its source, with two partitions.
        rows: how many distinct ones come in at a time.
    """

    topic: str
    rows: int = 40
    broken: int = 0
    repeated: int = 0
    _numbers: Iterator[int] = field(default_factory=itertools.count)
    _count: int = 0

    @property
    def expected(self) -> set[str]:
        """Names in the output."""
        return {f"row-{number}" for number in range(self._count)}

    @property
    def tags(self) -> dict[str, int]:
        """The counts of the record."""
        return {"data": self._count, "filtered": self.repeated, "quarantined": self.broken}

    @property
    def rows_in(self) -> int:
        """Records that came in."""
        return self._count + self.repeated + self.broken

    def next(self) -> Mapping[str, list[Record]]:
        """The next rows."""
        # As far back as the watermark lets them.
        records = [_row(number) for number in range(max(0, self._count - 8), self._count)]
        self.repeated += len(records)
        for number in itertools.islice(self._numbers, self.rows):
            self._count += 1
            records.append(_row(number))
            if number % _REPEATED == 0:
                self.repeated += 1
                records.append(_row(number))
            if number % _BROKEN == 0:
                self.broken += 1
                records.append(Record(_DOES_NOT_PARSE, partition=number // _BROKEN % 2))
        return {self.topic: records}


def _row(number: int) -> Record:
    return _record(number % 2, at=at(number), name=f"row-{number}", number=number)


@dataclass
class StateRows:
    """The inputs of `tests.chaos.apps.states`.

    Args:
        topics: source -> its topic, with two partitions.
        rows: how many of each come in at a time; a multiple of 10, so that no session and no window is cut.
    """

    topics: Mapping[str, str]
    rows: int = 30
    _numbers: Iterator[int] = field(default_factory=itertools.count)
    _count: int = 0

    @property
    def expected(self) -> set[str]:
        """Block and result, of all rows that came in, once `flush` has followed them."""
        by_block = {
            "windows": _grouped(self._count, lambda n: (n // 10, n % 3), lambda n: f"w{n % 3}"),
            "sessions": _grouped(self._count, lambda n: n // 5, lambda n: f"s{n // 5}"),
            "duplicates": {f"d{n}" for n in range(self._count)} | {f"flush-{partition}" for partition in range(2)},
            "pairs": {f"l{n}+r{n}" for n in range(self._count)},
            "steps": {row for n in range(self._count) for row in (f"t{n}#{n // _KEYS + 1}", f"k{n % _KEYS}:{_BEGIN_S + n}")}
            | {f"flush-{partition}#1" for partition in range(2)},
            "versions": {f"p{n}@v{n}" for n in range(self._count)},
            "tables": {f"+Iu{n}=t{n}" for n in range(self._count)},
        }
        return {f"{block} {row}" for block in self._blocks for row in by_block[block]}

    @property
    def rows_in(self) -> dict[str, int]:
        """Source -> records that came in."""
        return {source: (2 if source == "duplicates" else 1) * self._count + 2 for source in self.topics}

    def next(self) -> Mapping[str, list[Record]]:
        """The next rows."""
        coming: dict[str, list[Record]] = {source: [] for source in self.topics}
        for number in itertools.islice(self._numbers, self.rows):
            self._count += 1
            for source, record in _of(number):
                if source in coming:
                    coming[source].append(record)
        return {self.topics[source]: records for source, records in coming.items()}

    def flush(self) -> Mapping[str, list[Record]]:
        """One row an hour later in each partition of each input, so that the watermark passes all others."""
        late = at(self._count + 3600)
        return {
            topic: [_record(number, at=late, key=f"flush-{name}-{number}", name=f"flush-{number}") for number in range(2)]
            for name, topic in self.topics.items()
        }

    @property
    def _blocks(self) -> list[str]:
        return [block for block, sources in BLOCKS.items() if sources[0] in self.topics]


def _of(n: int) -> Iterator[tuple[str, Record]]:
    yield "windows", _record(n % 2, at=at(n), key=f"w{n % 3}", name=f"w{n}")
    yield "sessions", _record(n % 2, at=at(n), key=f"s{n // 5}", name=f"s{n}")
    for _ in range(2):
        yield "duplicates", _record(n % 2, at=at(n), key=f"d{n}", name=f"d{n}")
    yield "left", _record(n % 2, at=at(n), key=f"p{n}", name=f"l{n}")
    yield "right", _record(n % 2, at=at(n + 30), key=f"p{n}", name=f"r{n}")
    # The rows of a key in one partition: their numbers are by their order.
    yield "steps", _record(n % _KEYS % 2, at=at(n), key=f"k{n % _KEYS}", name=f"t{n}")
    yield "prices", _record(n % 2, at=at(n), key=f"c{n % _KEYS}", name=f"v{n}")
    yield "priced", _record(n % 2, at=at(n + 0.5), key=f"c{n % _KEYS}", name=f"p{n}")
    yield "users", _record(n % 2, at=at(n), key=f"u{n}", name=f"u{n}")
    yield "tiers", _record(n % 2, at=at(n + 5), key=f"u{n}", name=f"t{n}")


def _grouped(count: int, group: Any, key: Any) -> set[str]:
    result = set()
    for _, numbers in itertools.groupby(sorted(range(count), key=lambda n: (group(n), n)), key=group):
        some = list(numbers)
        first = key(some[0])
        result.add(f"{first}: {' '.join(sorted(f'{first[0]}{n}' for n in some))}")
    return result
