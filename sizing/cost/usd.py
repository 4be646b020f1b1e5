"""An amount of money that is known within bounds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

_Usd = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class UsdRange(BaseModel):
    """USD from `low` to `high`; both the same where the amount is exact.

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
        """One amount."""
        return cls(low=usd, high=usd)

    @property
    def exact(self) -> bool:
        """Whether the bounds are the same."""
        return self.low == self.high

    def times(self, factor: float) -> UsdRange:
        """Both bounds times a factor of 0 or more."""
        return UsdRange(low=self.low * factor, high=self.high * factor)


def total(ranges: Iterable[UsdRange]) -> UsdRange:
    """The sum, bound by bound; 0 of nothing."""
    summands = tuple(ranges)
    return UsdRange(low=sum(part.low for part in summands), high=sum(part.high for part in summands))
