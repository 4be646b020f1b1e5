"""A measured number with its spread, and the statistics that it comes from."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from typing import Annotated, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

_Number = Annotated[float, Field(ge=0, le=1e15, allow_inf_nan=False)]
# Ours: more pairs than of so many points make no better line, and take longer.
_MOST_POINTS = 300


class Spread(BaseModel):
    """A number that was measured several times.

    Args:
        low: first quartile, of a few values the least.
        typical: median.
        high: third quartile, of a few values the greatest.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", alias_generator=to_camel, validate_by_name=True)

    low: _Number
    typical: _Number
    high: _Number

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if not self.low <= self.typical <= self.high:
            need = f"low <= typical <= high, not {self.low:g}, {self.typical:g}, {self.high:g}"
            raise ValueError(need)
        return self

    @classmethod
    def of(cls, values: Iterable[float]) -> Self:
        """Of measured values, at least one; quartiles from four values on (inclusive method, as NumPy's default)."""
        ordered = sorted(float(value) for value in values)
        if len(ordered) < 4:
            return cls(low=ordered[0], typical=statistics.median(ordered), high=ordered[-1])
        low, typical, high = statistics.quantiles(ordered, n=4, method="inclusive")
        return cls(low=low, typical=typical, high=high)

    @classmethod
    def exactly(cls, value: float) -> Self:
        """A number without spread."""
        return cls(low=value, typical=value, high=value)

    def with_each(self, other: Spread, combine: Callable[[float, float], float]) -> Spread:
        """Low with low, typical with typical, high with high, by a function that rises in both."""
        return Spread(low=combine(self.low, other.low), typical=combine(self.typical, other.typical), high=combine(self.high, other.high))

    def inverse(self) -> Spread:
        """Of the reciprocals; all of them are above 0."""
        return Spread(low=1 / self.high, typical=1 / self.typical, high=1 / self.low)


class Line(NamedTuple):
    """``fixed + per_row * rows``.

    Args:
        fixed: the part that no row adds to, 0 or more.
        per_row: what a row adds, 0 or more.
    """

    fixed: float
    per_row: float


def line_through(points: Sequence[tuple[float, float]]) -> Line:
    """The line of the median slope of all pairs of points, which a quarter of disturbed points does not move far.

    A negative fixed part is 0, and the slope is then the median of the points' own ratios; so it is where all points have as many rows.

    Args:
        points: rows, more than 0, and what they took; at least one. Of more than 300 points, 300 evenly among them count.

    Source: Theil (1950) and Sen (1968), the median of the pairwise slopes; the fixed part is the median of what the slope leaves.
    """
    some = _evenly(points)
    slopes = [(after[1] - before[1]) / (after[0] - before[0]) for before, after in combinations(some, 2) if after[0] != before[0]]
    if slopes:
        slope = statistics.median(slopes)
        fixed = statistics.median(took - slope * rows for rows, took in some)
        if slope >= 0 and fixed >= 0:
            return Line(fixed, slope)
    return Line(0.0, statistics.median(took / rows for rows, took in some))


def _evenly(points: Sequence[tuple[float, float]]) -> Sequence[tuple[float, float]]:
    if len(points) <= _MOST_POINTS:
        return points
    return [points[number * len(points) // _MOST_POINTS] for number in range(_MOST_POINTS)]
