"""Where the inputs of a bounded run end: decided once, before its first query, and kept in its checkpoint.

Spark freezes the end of an input too (Trigger.AvailableNow), but again at each start of a query: after a restart it would read what has
arrived since.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import BaseModel, ConfigDict, Field

# Topic -> partition -> offset after the last record.
PartitionEnds = Mapping[str, Mapping[int, int]]


class InputEnds(BaseModel):
    """The ends of all sources of a job.

    Args:
        topics: source -> topic -> partition -> offset after its last record; Kafka sources only.
        files: source -> URIs of its files; sources of files only.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    topics: dict[str, dict[str, dict[int, int]]] = Field(default_factory=dict)
    files: dict[str, list[str]] = Field(default_factory=dict)

    def by_topic(self) -> dict[str, dict[int, int]]:
        """Topic -> partition -> the end; of several sources that read it, the last one's."""
        ends: dict[str, dict[int, int]] = {}
        for topics in self.topics.values():
            for topic, partitions in topics.items():
                known = ends.setdefault(topic, {})
                known.update({number: max(end, known.get(number, 0)) for number, end in partitions.items()})
        return ends

    def of(self, source: str, *, read: bool) -> SourceEnd:
        """The end of a source.

        Args:
            source: its name.
            read: whether it has been read up to there.
        """
        return SourceEnd(self.topics.get(source, {}), self.files.get(source, []), read)


@dataclass(frozen=True)
class SourceEnd:
    """Where a source ends.

    Args:
        offsets: topic -> partition -> offset after its last record, for Kafka.
        files: URIs of its files, for files.
        read: whether it has been read up to there, so that nothing more is.
    """

    offsets: PartitionEnds = field(default_factory=dict)
    files: list[str] = field(default_factory=list)
    read: bool = False
