"""The watermark once more, in plain Python and from the recorded micro-batches: the oracle that tells which rows are late.

Deliberately not `jobs.event_time.watermark`: what checks must not share code with what is checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from jobs.local.recording import Recorded, RecordedBatch, Recording


@dataclass(frozen=True)
class Clock:
    """How a topic's event time is read.

    Args:
        time_ms: event time of a record in epoch milliseconds; None for one that does not parse.
        bound_ms: how far out of order.
        idleness_ms: after how long a silent partition is left out.
    """

    time_ms: Callable[[Recorded], int | None]
    bound_ms: int
    idleness_ms: int


@dataclass(frozen=True)
class Judged:
    """A record and what became of it: its event time (None: quarantined), and whether it was late."""

    topic: str
    record: Recorded
    time_ms: int | None
    late: bool


def judge(recording: Recording, clocks: Mapping[str, Clock]) -> Iterator[Judged]:
    """Every record in the order of the micro-batches.

    Raises:
        AssertionError: the engine's own log holds another watermark for a micro-batch than its input gives.
    """
    greatest: dict[tuple[str, int], int] = {}
    heard: dict[tuple[str, int], int] = {}
    in_force: int | None = None
    for batch, read in recording.by_batch():
        if in_force is not None:
            assert batch.watermark_ms == in_force - 1, (
                f"batch {batch.number}: {batch.watermark_ms} in the offset log, {in_force} - 1 from its input"
            )
        for topic, records in read.items():
            for record in records:
                time_ms = clocks[topic].time_ms(record)
                yield Judged(topic, record, time_ms, time_ms is not None and in_force is not None and time_ms < in_force)
                place = (topic, record.partition)
                heard[place] = batch.time_ms
                if time_ms is not None:
                    greatest[place] = max(time_ms, greatest.get(place, time_ms))
        in_force = _in_force(recording, clocks, batch, greatest, heard, in_force)


def _in_force(
    recording: Recording,
    clocks: Mapping[str, Clock],
    batch: RecordedBatch,
    greatest: Mapping[tuple[str, int], int],
    heard: dict[tuple[str, int], int],
    before: int | None,
) -> int | None:
    candidates: list[int] = []
    for topic, clock in clocks.items():
        for partition in range(recording.partitions[topic]):
            place = (topic, partition)
            if batch.time_ms - heard.setdefault(place, batch.time_ms) >= clock.idleness_ms:
                continue
            if place not in greatest:
                return before
            candidates.append(greatest[place] - clock.bound_ms)
    return max([min(candidates), *([before] if before is not None else [])]) if candidates else before
