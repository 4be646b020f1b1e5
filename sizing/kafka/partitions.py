"""Partitions of topics that several jobs share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def most_partitions(plans: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Topic -> partitions for topics shared by several jobs: the maximum that any of them requires.

    Args:
        plans: for each job, topic -> partitions.
    """
    most: dict[str, int] = {}
    for topics in plans:
        for topic, partitions in topics.items():
            most[topic] = max(partitions, most.get(topic, 0))
    return most
