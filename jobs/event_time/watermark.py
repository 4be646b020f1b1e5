"""The watermark: how far event time has come, decided by Penstock and not by Spark.

The watermark of an input is the least, over the topic's partitions, of the greatest event time seen less the bound, as Flink's per-split
watermarks; of several inputs the least counts. Spark takes the greatest over all partitions: on a catch-up or a rewind it would drop
the rows of a slower partition as late.

Pure: times come in as numbers, so that a replayed micro-batch gives the same watermark.
"""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", alias_generator=to_camel, validate_by_name=True)


class InputTime(_Frozen):
    """How an input's event time behaves.

    Args:
        bound_ms: how far its rows may be out of order.
        idleness_ms: after this long without rows a partition holds nothing back; None waits for ever.
    """

    bound_ms: int = Field(ge=0)
    idleness_ms: int | None = Field(default=None, ge=1)


class Seen(_Frozen):
    """What a micro-batch brought from one partition.

    Args:
        rows: all records, those that do not parse too.
        greatest_ms: greatest event time in epoch milliseconds; None where no row had one.
    """

    rows: int = Field(ge=0)
    greatest_ms: int | None = None


class Partition(_Frozen):
    """What is known of a partition after a micro-batch; times in epoch milliseconds, `active_ms` by the batches' clock."""

    greatest_ms: int | None = None
    active_ms: int


class Watermarks(_Frozen):
    """The state after a micro-batch, which the next one begins with.

    Args:
        in_force_ms: what the next micro-batch's rows are held against; None while there is no watermark.
        inputs: the watermark of each input, for people to look at.
        partitions: input -> partition -> what is known of it.
    """

    in_force_ms: int | None = None
    inputs: dict[str, int | None] = Field(default_factory=dict)
    partitions: dict[str, dict[int, Partition]] = Field(default_factory=dict)

    def advance(self, times: Mapping[str, InputTime], seen: Mapping[str, Mapping[int, Seen]], now_ms: int) -> Watermarks:
        """The watermarks after one more micro-batch.

        Args:
            times: every input with event time.
            seen: input -> every partition of its topic -> what the micro-batch brought.
            now_ms: the micro-batch's own time, which a replay repeats.

        Returns:
            The new state. A watermark never goes back, and stands while every input is idle.
        """
        partitions = {name: _partitions(self.partitions.get(name, {}), seen.get(name, {}), now_ms) for name in times}
        active = {name: _active(partitions[name], times[name], now_ms) for name in times}
        inputs = {name: _input_watermark(active[name], times[name], self.inputs.get(name)) for name in times}
        return Watermarks(in_force_ms=self._in_force(inputs, active), inputs=inputs, partitions=partitions)

    def _in_force(self, inputs: Mapping[str, int | None], active: Mapping[str, list[Partition]]) -> int | None:
        known = [inputs[name] for name, partitions in active.items() if partitions]
        held_back = not known or any(watermark is None for watermark in known)
        return self.in_force_ms if held_back else _later(self.in_force_ms, min(w for w in known if w is not None))


def is_late(time_ms: int, in_force_ms: int | None) -> bool:
    """Late means strictly older than the watermark in force when the row's micro-batch began."""
    return in_force_ms is not None and time_ms < in_force_ms


def _partitions(known: Mapping[int, Partition], seen: Mapping[int, Seen], now_ms: int) -> dict[int, Partition]:
    """Every partition that was known or is there now. One that shows up for the first time counts as active from then on."""
    after: dict[int, Partition] = {}
    for number in sorted({*known, *seen}):
        before = known.get(number, Partition(active_ms=now_ms))
        batch = seen.get(number, Seen(rows=0))
        active_ms = now_ms if batch.rows else before.active_ms
        after[number] = Partition(greatest_ms=_later(before.greatest_ms, batch.greatest_ms), active_ms=active_ms)
    return after


def _active(partitions: Mapping[int, Partition], time: InputTime, now_ms: int) -> list[Partition]:
    """Those that hold the watermark back. A partition with a backlog brings rows in every micro-batch, so what is idle has been read."""
    if time.idleness_ms is None:
        return list(partitions.values())
    return [partition for partition in partitions.values() if now_ms - partition.active_ms < time.idleness_ms]


def _input_watermark(active: list[Partition], time: InputTime, before: int | None) -> int | None:
    greatest = [partition.greatest_ms for partition in active]
    if not greatest or None in greatest:
        return before
    return _later(before, min(moment for moment in greatest if moment is not None) - time.bound_ms)


def _later(one: int | None, other: int | None) -> int | None:
    moments = [moment for moment in (one, other) if moment is not None]
    return max(moments, default=None)
