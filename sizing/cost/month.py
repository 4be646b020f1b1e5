"""The length of a billed month, the same for all items."""

from __future__ import annotations

# Source: AWS Pricing Calculator uses 730 hours per month: 8,760 hours per year / 12.
HOURS_PER_MONTH = 730

_SECONDS_PER_HOUR = 3600
_MIB_PER_GIB = 1024


def per_month(per_day: float) -> float:
    """Converts a count per day to a count per month of 730 hours (30.4 days).

    Args:
        per_day: count per day, 0 or more.
    """
    return per_day * HOURS_PER_MONTH / 24


def gib_per_month(mib_per_s: float) -> float:
    """Converts a steady rate to an amount per month.

    Args:
        mib_per_s: MiB per second, 0 or more.

    Returns:
        GiB in a month of 730 hours.
    """
    return mib_per_s * _SECONDS_PER_HOUR * HOURS_PER_MONTH / _MIB_PER_GIB
