"""Counts of what a micro-batch read from each partition, collected while its rows pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.jobs.stream.event_time.judging import BEHIND, LATE
from penstock.jobs.watermark import Seen

PREFIX = "penstock_time_"


def observe(frame: DataFrame, source: str, splits: int, split: str, time: str) -> DataFrame:
    """Counts rows and the maximum event time of each split while the rows pass; the rows themselves are unchanged.

    Args:
        frame: the rows of one source; if `judging.judged` has compared them with the watermark, those behind it are counted too.
        source: the source's name.
        splits: their number when the query is planned; for Kafka, the partitions.
        split: the column with the split's number, from 0.
        time: the column with the event time; null for rows without.
    """
    metrics = [F.coalesce(F.max(split), F.lit(-1)).alias("last_partition")]
    for number in range(splits):
        here = F.col(split) == number
        metrics.append(F.count(F.when(here, 1)).alias(f"rows_{number}"))
        metrics.append(F.max(F.when(here, F.unix_millis(time))).alias(f"greatest_{number}"))
    if LATE in frame.columns:
        metrics.append(F.count(F.when(F.col(LATE), 1)).alias("late"))
        metrics.append(F.count(F.when(F.col(BEHIND).isNotNull() & ~F.col(LATE), 1)).alias("tolerated"))
    return frame.observe(PREFIX + source, *metrics)


def seen(metrics: Mapping[str, Any], splits: Sequence[str]) -> dict[str, Seen]:
    """The counts of every split, by its label."""
    return {
        split: Seen(rows=int(metrics.get(f"rows_{number}") or 0), greatest_ms=_integer(metrics.get(f"greatest_{number}")))
        for number, split in enumerate(splits)
    }


def late(metrics: Mapping[str, Any]) -> int:
    """Number of late rows."""
    return int(metrics.get("late") or 0)


def tolerated(metrics: Mapping[str, Any]) -> int:
    """Number of rows older than the watermark that still counted because they were within the allowed lateness."""
    return int(metrics.get("tolerated") or 0)


def grown(metrics: Mapping[str, Any], splits: int) -> bool:
    """Whether rows came from a partition that did not exist when the query was planned."""
    return int(metrics.get("last_partition", -1)) >= splits


def _integer(value: Any) -> int | None:
    return None if value is None else int(value)
