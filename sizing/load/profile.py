"""A measured profile: throughput of a job by number of slots."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

_Rate = Annotated[float, Field(gt=0, le=1e12, allow_inf_nan=False)]


class _Measured(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, validate_by_name=True, validate_by_alias=True)


class ProfilePoint(_Measured):
    """One measurement: steady-state throughput of a number of slots, without lag."""

    slots: Annotated[int, Field(ge=1, le=32_768)]
    events_per_second: _Rate


class Profile(_Measured):
    """The measurements of one job.

    Args:
        date: ISO date of the measurement.
        source: what was measured and where, for display.
        points: in ascending order of slots.
    """

    date: str = ""
    source: str = ""
    points: Annotated[tuple[ProfilePoint, ...], Field(min_length=1, max_length=1000)]

    @model_validator(mode="after")
    def _rising(self) -> Self:
        for before, after in pairwise(self.points):
            if after.slots <= before.slots:
                need = f"points in ascending order of slots; {after.slots} comes after {before.slots}"
                raise ValueError(need)
        return self

    def events_per_s(self, slots: int) -> float:
        """Throughput of this many slots.

        Linear between two points; proportional below the first; above the last extrapolated from the last two points, but a slot never
        adds more than the average slot of the last point. A point below one with fewer slots is raised to that one: a disturbed
        measurement must not make a larger plan look worse.
        """
        best = 0.0
        before_slots, before = 0, 0.0
        for point in self.points:
            best = max(best, point.events_per_second)
            if slots <= point.slots:
                return before + (best - before) * (slots - before_slots) / (point.slots - before_slots)
            slope = (best - before) / (point.slots - before_slots)
            before_slots, before = point.slots, best
        return before + min(slope, before / before_slots) * (slots - before_slots)

    @property
    def measured_slots(self) -> int:
        """The highest measured number of slots; values above are extrapolated."""
        return self.points[-1].slots
