"""How many partitions the plan gives to the job's topics."""

from __future__ import annotations

from sizing.load.parallelism import needed_partitions
from sizing.targets import Targets


def topic_partitions(targets: Targets) -> dict[str, int]:
    """Topic -> partitions: as asked, else as many as the parallelism, for one task reads one partition, or as many as a load needs.

    Returns:
        Sources first, then sinks, each in the order of the targets.
    """
    return {**read_partitions(targets), **targets.sink_topics}


def read_partitions(targets: Targets) -> dict[str, int]:
    """As `topic_partitions`, of the topics that the job reads."""
    parallelism = targets.parallelism.value
    fewest = parallelism if targets.load is None else needed_partitions(targets.load, parallelism).partitions
    return {topic: asked or fewest for topic, asked in targets.source_topics.items()}
