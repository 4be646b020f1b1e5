"""Measurements of time and skew in each micro-batch, by the names of their gauges among Spark's own metrics."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.jobs.storage.checkpoint import BatchRecord
from penstock.jobs.watermark import InputTime, Seen

# Each is followed by an input's name and, for a partition, its label.
WATERMARK_MS = "penstock.watermarkMs"
ROWS = "penstock.rows"
LATE_ROWS = "penstock.lateRows"
TOLERATED_ROWS = "penstock.toleratedRows"


def of_query(query: str, gauges: Mapping[str, int]) -> dict[str, int]:
    """The gauges of one query of several: ``penstock.rows.clicks`` of the query ``counts`` is ``penstock.rows.queries.counts.clicks``.

    Args:
        query: its name among those of the job; empty for the first, whose gauges keep their names.
        gauges: name -> value.
    """
    return {_of_query(query, name): value for name, value in gauges.items()} if query else dict(gauges)


def _of_query(query: str, name: str) -> str:
    prefix, kind, *rest = name.split(".", 2)
    return ".".join([prefix, kind, "queries", query, *rest])


def measured(record: BatchRecord, seen: Mapping[str, Mapping[str, Seen]], times: Mapping[str, InputTime]) -> dict[str, int]:
    """Gauge values after a micro-batch.

    Args:
        record: of the micro-batch.
        seen: input -> partition -> what the micro-batch read from it.
        times: input -> its event-time settings.

    Returns:
        Name -> value: the watermark of the job, of each input and of each partition in epoch milliseconds, if known; that of the job
        without the end of a bounded input, so that the gauge stays where the data has taken it; the micro-batch's
        rows by partition; the late and the tolerated rows of each input since the checkpoint began.
    """
    watermarks = record.watermarks
    gauges: dict[str, int | None] = {WATERMARK_MS: None if watermarks.at_end else watermarks.current_ms}
    for name, partitions in seen.items():
        gauges |= {f"{ROWS}.{name}.{label}": partition.rows for label, partition in partitions.items()}
    for name, time in times.items():
        gauges[f"{WATERMARK_MS}.{name}"] = watermarks.inputs.get(name)
        gauges[f"{LATE_ROWS}.{name}"] = record.total_late.get(name, 0)
        gauges[f"{TOLERATED_ROWS}.{name}"] = record.total_tolerated.get(name, 0)
        for label, partition in watermarks.partitions.get(name, {}).items():
            gauges[f"{WATERMARK_MS}.{name}.{label}"] = None if partition.greatest_ms is None else partition.greatest_ms - time.bound_ms
    return {name: value for name, value in gauges.items() if value is not None}
