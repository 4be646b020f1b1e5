"""How many partitions topics have that several jobs share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def most_partitions(plans: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Topic -> partitions, where several jobs share topics: the most that any of them asks for.

    Args:
        plans: of each job, topic -> partitions.
    """
    found: dict[str, int] = {}
    for topics in plans:
        for topic, partitions in topics.items():
            found[topic] = max(partitions, found.get(topic, 0))
    return found
