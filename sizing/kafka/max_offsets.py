"""How Spark divides ``maxOffsetsPerTrigger`` among a topic's partitions."""

from __future__ import annotations

import math
from collections.abc import Sequence


def prorated(limit: int, backlogs: Sequence[int]) -> tuple[int, ...]:
    """Records that a micro-batch reads from each partition.

    Args:
        limit: ``maxOffsetsPerTrigger``, 1 or more.
        backlogs: backlog of each partition in records.

    Returns:
        For each partition its share by backlog, rounded down, but at least one record where the backlog is above 0. The sum can be
        slightly above or below the limit.

    Source: Spark 4.1.1, KafkaMicroBatchStream.rateLimit; it uses doubles, as here.
    """
    total = float(sum(backlogs))
    if not total:
        return tuple(0 for _ in backlogs)
    return tuple(min(backlog, _share(limit * (backlog / total))) for backlog in backlogs)


def _share(share: float) -> int:
    return math.ceil(share) if share < 1 else math.floor(share)
