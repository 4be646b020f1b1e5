"""What a job has written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any


@dataclass(frozen=True)
class MicroBatch:
    """A micro-batch as it was committed.

    Args:
        number: Spark's.
        rows: sink -> its rows, those of side outputs included: of a topic, the values, parsed if they are JSON; of another sink, the data
            columns of each row. Times are in UTC.
        counts: tag -> rows: ``data``, ``quarantined``, ``late``, ``filtered``, ``unmatched`` and those of the app.
        watermark: what the next one begins with; None: there is none yet.
        query: of the job; empty for the first.
    """

    number: int
    rows: Mapping[str, Sequence[Any]]
    counts: Mapping[str, int]
    watermark: datetime | None
    query: str = ""

    def __getitem__(self, sink: str) -> Sequence[Any]:
        """The rows of a sink."""
        return self.rows.get(sink, [])


@dataclass(frozen=True)
class Output:
    """What a job has written from when it was started until it had read everything.

    Args:
        batches: the micro-batches, in the order in which they were committed. Where the watermark has advanced, the last one is of no
            input: it closes what is due.
    """

    batches: Sequence[MicroBatch] = field(default_factory=list)

    def __getitem__(self, sink: str) -> Sequence[Any]:
        """The rows of a sink, of all micro-batches."""
        return [row for batch in self.batches for row in batch[sink]]

    @property
    def counts(self) -> Mapping[str, int]:
        """Tag -> rows of all micro-batches."""
        return sum((Counter(batch.counts) for batch in self.batches), Counter[str]())
