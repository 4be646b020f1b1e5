"""The watermark: how far event time has advanced, decided by Penstock rather than Spark.

The watermark of an input is the minimum, over its partitions, of the maximum event time seen minus the bound, like Flink's per-split
watermarks; across several inputs it is the minimum. Spark takes the maximum over all partitions: on a catch-up or a rewind it would drop
the rows of a slower partition as late.

Pure: times are passed in as numbers, so a replayed micro-batch yields the same watermark.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

if TYPE_CHECKING:
    from penstock.jobs.spec.sources import EventTime

WhenIdle = Literal["stand", "clock"]
# The watermark once a bounded input has ended, in epoch milliseconds: the end of the year 9999, which no data takes it to. Sources accept
# no later event time, and neither Python nor SQL represents one.
END_MS = 253_402_300_800_000


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", alias_generator=to_camel, validate_by_name=True)


class InputTime(_Frozen):
    """The event-time settings of an input.

    Args:
        bound_ms: maximum out-of-orderness of its rows.
        idleness_ms: after this long without rows a partition no longer holds back the watermark; None: it always does.
        lateness_ms: allowed lateness, for which rows behind the watermark still count.
        by_clock: whether its rows' time is that of the micro-batch (processing time), so that its watermark is the clock.
    """

    bound_ms: int = Field(ge=0)
    idleness_ms: int | None = Field(default=None, ge=1)
    lateness_ms: int = Field(default=0, ge=0)
    by_clock: bool = False

    @classmethod
    def of(cls, time: EventTime) -> InputTime:
        """From a source's `time` in the spec."""
        return cls(
            bound_ms=time.out_of_orderness,
            idleness_ms=time.idleness,
            lateness_ms=time.allowed_lateness,
            by_clock=time.kind == "processing",
        )


class Seen(_Frozen):
    """What a micro-batch read from one partition.

    Args:
        rows: all records, including those that do not parse.
        greatest_ms: maximum event time in epoch milliseconds; None if no row had one.
    """

    rows: int = Field(ge=0)
    greatest_ms: int | None = None


class Partition(_Frozen):
    """The state of a partition after a micro-batch; times in epoch milliseconds, `active_ms` by the micro-batches' clock."""

    greatest_ms: int | None = None
    active_ms: int


class Watermarks(_Frozen):
    """The state after a micro-batch, with which the next one begins.

    Args:
        current_ms: the job's watermark, with which the next micro-batch begins; None if there is none yet.
        cleared_ms: up to where the operators' state may have been cleared: the watermark minus the greatest allowed lateness. Never
            decreases, even if the spec allows more than before. None in records of versions without allowed lateness.
        inputs: the watermark of each input, for display.
        partitions: input -> partition, such as ``topic-0`` -> its state.
    """

    # The field's name in checkpoints.
    current_ms: int | None = Field(default=None, alias="inForceMs")
    cleared_ms: int | None = None
    inputs: dict[str, int | None] = Field(default_factory=dict)
    partitions: dict[str, dict[str, Partition]] = Field(default_factory=dict)

    @property
    def engine_ms(self) -> int | None:
        """Value that Spark's own watermark follows: no row this old or older may reach a stateful operator any more."""
        return self.current_ms if self.cleared_ms is None else self.cleared_ms

    @property
    def at_end(self) -> bool:
        """Whether a bounded input has ended."""
        return self.current_ms == END_MS

    def ended(self) -> Watermarks:
        """The watermarks once all of a bounded input has been read. Those of inputs and partitions stay where the data has taken them."""
        return self.model_copy(update={"current_ms": END_MS, "cleared_ms": END_MS})

    def advance(
        self, times: Mapping[str, InputTime], seen: Mapping[str, Mapping[str, Seen]], now_ms: int, when_idle: WhenIdle = "stand"
    ) -> Watermarks:
        """The watermarks after one more micro-batch.

        Args:
            times: every input with event time.
            seen: input -> every partition of it -> what the micro-batch read from it.
            now_ms: the micro-batch's own timestamp, which a replay repeats.
            when_idle: whether the watermark stands while every input is idle, or follows the clock.

        Returns:
            The new state. A watermark never decreases.
        """
        partitions = {name: _partitions(self.partitions.get(name, {}), seen.get(name, {}), now_ms) for name in times}
        active = {name: _active(partitions[name], times[name], now_ms) for name in times}
        idle = not any(active[name] or time.by_clock for name, time in times.items())
        by_clock = {name for name, time in times.items() if time.by_clock or (idle and when_idle == "clock")}
        inputs = {
            name: _later(self.inputs.get(name), now_ms - time.bound_ms)
            if name in by_clock
            else _input_watermark(active[name], time, self.inputs.get(name))
            for name, time in times.items()
        }
        known = [inputs[name] for name in times if active[name] or name in by_clock]
        current_ms = self._current(known)
        return Watermarks(current_ms=current_ms, cleared_ms=self._cleared(current_ms, times), inputs=inputs, partitions=partitions)

    def _current(self, known: list[int | None]) -> int | None:
        held_back = not known or None in known
        return self.current_ms if held_back else _later(self.current_ms, min(w for w in known if w is not None))

    def _cleared(self, current_ms: int | None, times: Mapping[str, InputTime]) -> int | None:
        if current_ms is None:
            return None
        return _later(self.engine_ms, current_ms - max((time.lateness_ms for time in times.values()), default=0))


def is_late(time_ms: int, watermarks: Watermarks, lateness_ms: int = 0) -> bool:
    """Late means strictly older than the watermark with which the row's micro-batch began, by more than the allowed lateness.

    Whatever the spec allows now, rows behind the cleared state are late.
    """
    limits = [watermarks.engine_ms, None if watermarks.current_ms is None else watermarks.current_ms - lateness_ms]
    return any(limit is not None and time_ms < limit for limit in limits)


def _partitions(known: Mapping[str, Partition], seen: Mapping[str, Seen], now_ms: int) -> dict[str, Partition]:
    """All current partitions. A new one counts as active from its first appearance."""
    after: dict[str, Partition] = {}
    for name, batch in sorted(seen.items()):
        # Records of versions that allowed one topic per source identify its partitions by number alone.
        before = known.get(name) or known.get(name.rpartition("-")[2]) or Partition(active_ms=now_ms)
        active_ms = now_ms if batch.rows else before.active_ms
        after[name] = Partition(greatest_ms=_later(before.greatest_ms, batch.greatest_ms), active_ms=active_ms)
    return after


def _active(partitions: Mapping[str, Partition], time: InputTime, now_ms: int) -> list[Partition]:
    """The partitions that hold back the watermark. A partition with a backlog yields rows in every micro-batch, so an idle one has been
    read to its end.
    """
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
