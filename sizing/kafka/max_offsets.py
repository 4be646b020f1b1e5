"""How ``maxOffsetsPerTrigger`` is shared out over a topic's partitions."""

from __future__ import annotations

import math
from collections.abc import Sequence


def prorated(limit: int, backlogs: Sequence[int]) -> tuple[int, ...]:
    """Records that a micro-batch takes of each partition.

    Args:
        limit: ``maxOffsetsPerTrigger``, 1 or more.
        backlogs: records that wait in each partition.

    Returns:
        For each partition its share by size, rounded down, but never none of a partition where something waits. Together they may be a few
        more or fewer than the limit.

    Source: Spark 4.1.1, KafkaMicroBatchStream.rateLimit; it computes in doubles, as this does.
    """
    total = float(sum(backlogs))
    if not total:
        return tuple(0 for _ in backlogs)
    return tuple(min(backlog, _share(limit * (backlog / total))) for backlog in backlogs)


def _share(share: float) -> int:
    return math.ceil(share) if share < 1 else math.floor(share)
