"""How many partitions the plan gives to the job's topics."""

from __future__ import annotations

from sizing.targets import Targets


def topic_partitions(targets: Targets) -> dict[str, int]:
    """Topic -> partitions: as asked, and else as many as the parallelism, for one task reads one partition.

    Returns:
        Sources first, then sinks, each in the order of the targets.
    """
    return {**read_partitions(targets), **targets.sink_topics}


def read_partitions(targets: Targets) -> dict[str, int]:
    """As `topic_partitions`, of the topics that the job reads."""
    return {topic: asked or targets.parallelism.value for topic, asked in targets.source_topics.items()}
