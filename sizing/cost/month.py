"""The month of a bill, which is the same for everything on it."""

from __future__ import annotations

# Source: AWS Pricing Calculator counts 730 hours a month: 8,760 hours a year / 12.
HOURS_PER_MONTH = 730

_SECONDS_PER_HOUR = 3600
_MIB_PER_GIB = 1024


def per_month(per_day: float) -> float:
    """What happens so often a day, in a month of 730 hours (30.4 days).

    Args:
        per_day: 0 or more, of anything.
    """
    return per_day * HOURS_PER_MONTH / 24


def gib_per_month(mib_per_s: float) -> float:
    """A steady rate as an amount.

    Args:
        mib_per_s: MiB a second, 0 or more.

    Returns:
        GiB in a month of 730 hours.
    """
    return mib_per_s * _SECONDS_PER_HOUR * HOURS_PER_MONTH / _MIB_PER_GIB
