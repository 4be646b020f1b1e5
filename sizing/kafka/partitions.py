"""How many partitions the plan gives to the job's topics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from penstock.sizing.load.parallelism import needed_partitions
from penstock.sizing.targets import Targets


def read_partitions(targets: Targets) -> dict[str, int]:
    """Topic that the job reads -> partitions: as asked, else one for each task that reads it, by default the parallelism, or what a load
    needs."""
    parallelism = targets.parallelism.value
    fewest = parallelism if targets.load is None else needed_partitions(targets.load, parallelism).partitions
    return {topic: asked or targets.stages.source.get(topic, fewest) for topic, asked in targets.source_topics.items()}


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
