"""The partitions in which a job has read its files, and those after its repartitions, as its driver reports them by micro-batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.scripts.render.bytes_text import bytes_text


@dataclass
class ReadPartitions:
    """The partitions of all micro-batches so far."""

    # Query, empty for the only one -> source of files -> its partitions, files and bytes of all micro-batches.
    _reads: dict[str, dict[str, Counter[str]]] = field(default_factory=dict)
    # Query -> partitions after each repartition of the app, of the last micro-batch that has read files.
    _repartitions: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def take(self, batch: Mapping[str, Any]) -> None:
        """Takes an event ``batch`` of the driver."""
        query, reads = str(batch.get("query", "")), batch.get("fileReads") or {}
        for source, read in reads.items():
            self._reads.setdefault(query, {}).setdefault(source, Counter()).update(read)
        if reads:
            self._repartitions[query] = tuple(batch["repartitions"])

    @property
    def sentences(self) -> list[str]:
        """For people, one for each source and one for each repartition: ``lines: 3 partitions of 3 files, 92.1 KiB``."""
        found = []
        for query, reads in self._reads.items():
            said = [f"{source}: {_read(read)}" for source, read in reads.items()]
            said += [f"{_count(number, 'partition')} after a repartition" for number in self._repartitions[query]]
            found += [f"{query}: {sentence}" if query else sentence for sentence in said]
        return found


def _read(read: Counter[str]) -> str:
    return f"{_count(read['partitions'], 'partition')} of {_count(read['files'], 'file')}, {bytes_text(read['bytes'])}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
