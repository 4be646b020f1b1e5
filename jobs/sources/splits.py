"""Splits: the units that the watermark of a source is computed over. Each partition of a topic is a split; any other source is a single
one.
"""

from __future__ import annotations

from collections.abc import Mapping


def splits(name: str, offsets: Mapping[str, Mapping[int, int]]) -> tuple[str, ...]:
    """Labels of a source's splits, in the order of their numbers.

    Args:
        name: name of the source.
        offsets: topic -> partition -> offset for Kafka; empty for other sources.

    Returns:
        ``topic-partition`` of each, sorted by topic and number; the source's name if it has no partitions.
    """
    names = tuple(f"{topic}-{number}" for topic, partitions in sorted(offsets.items()) for number in sorted(partitions))
    return names or (name,)
