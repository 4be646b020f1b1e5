"""What a micro-batch brought from each partition, counted while its rows pass."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.event_time.watermark import Seen

PREFIX = "penstock_time_"


def observe(frame: DataFrame, source: str, partitions: int, partition: str, time: str) -> DataFrame:
    """Counts rows and the greatest event time of each partition as the rows pass by; the rows are left as they are.

    Args:
        frame: the rows of one source.
        source: the source's name.
        partitions: how many the topic has now.
        partition: the column with the partition's number.
        time: the column with the event time; null for rows without.
    """
    metrics = [F.coalesce(F.max(partition), F.lit(-1)).alias("last_partition")]
    for number in range(partitions):
        here = F.col(partition) == number
        metrics.append(F.count(F.when(here, 1)).alias(f"rows_{number}"))
        metrics.append(F.max(F.when(here, F.unix_millis(time))).alias(f"greatest_{number}"))
    return frame.observe(PREFIX + source, *metrics)


def seen(metrics: Mapping[str, Any], partitions: int) -> dict[int, Seen]:
    """What was counted, for every partition of the topic."""
    return {
        number: Seen(rows=int(metrics.get(f"rows_{number}") or 0), greatest_ms=_integer(metrics.get(f"greatest_{number}")))
        for number in range(partitions)
    }


def grown(metrics: Mapping[str, Any], partitions: int) -> bool:
    """Whether rows came from a partition that the topic did not have when the query was planned."""
    return int(metrics.get("last_partition", -1)) >= partitions


def _integer(value: Any) -> int | None:
    return None if value is None else int(value)
