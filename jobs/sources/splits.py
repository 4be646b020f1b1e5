"""Lanes: what the watermark of a source is counted by. A partition of a topic is one; a source of another kind has one in all."""

from __future__ import annotations

from collections.abc import Mapping


def splits(name: str, offsets: Mapping[str, Mapping[int, int]]) -> tuple[str, ...]:
    """Labels of a source's splits, in the order of their numbers.

    Args:
        name: of the source.
        offsets: topic -> partition -> offset, for Kafka; empty for the others.

    Returns:
        ``topic-partition`` of each, sorted by topic and number; the source's name where there are none.
    """
    names = tuple(f"{topic}-{number}" for topic, partitions in sorted(offsets.items()) for number in sorted(partitions))
    return names or (name,)
