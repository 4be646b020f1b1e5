"""An amount of money with a lower and an upper bound."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

_Usd = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class UsdRange(BaseModel):
    """USD from `low` to `high`; equal if the amount is exact.

    Args:
        low: 0 or more.
        high: not below `low`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    low: _Usd
    high: _Usd

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.low > self.high:
            raise ValueError("low is not above high")
        return self

    @classmethod
    def exactly(cls, usd: float) -> Self:
        """An exact amount."""
        return cls(low=usd, high=usd)

    @property
    def exact(self) -> bool:
        """Whether the bounds are equal."""
        return self.low == self.high

    def times(self, factor: float) -> UsdRange:
        """Multiplies both bounds by a factor of 0 or more."""
        return UsdRange(low=self.low * factor, high=self.high * factor)


def total(ranges: Iterable[UsdRange]) -> UsdRange:
    """The sum, bound by bound; 0 if empty."""
    summands = tuple(ranges)
    return UsdRange(low=sum(part.low for part in summands), high=sum(part.high for part in summands))
