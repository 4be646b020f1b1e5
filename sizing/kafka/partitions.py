"""How many partitions the plan gives to the job's topics."""

from __future__ import annotations

from sizing.load.parallelism import needed_partitions
from sizing.targets import Targets


def read_partitions(targets: Targets) -> dict[str, int]:
    """Topic that the job reads -> partitions: as asked, else the parallelism, for one task reads one partition, or what a load needs."""
    parallelism = targets.parallelism.value
    fewest = parallelism if targets.load is None else needed_partitions(targets.load, parallelism).partitions
    return {topic: asked or fewest for topic, asked in targets.source_topics.items()}
