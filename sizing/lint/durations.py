"""Kubernetes durations, and days between dates, without a clock."""

from __future__ import annotations

import re

_PART_S = {"s": 1, "m": 60, "h": 3600}
NEVER = "Never"


def seconds(text: str) -> int | None:
    """Parses a Karpenter duration, such as ``720h`` or ``1h30m``.

    Returns:
        Seconds; None for ``Never`` and for an invalid duration.
    """
    if not re.fullmatch(r"([0-9]+[smh])+", text):
        return None
    return sum(int(number) * _PART_S[unit] for number, unit in re.findall(r"([0-9]+)([smh])", text))


def day_number(date: str) -> int:
    """The day number of a date, ``2026-11-21``, from an arbitrary epoch: the difference of two is a number of days.

    Source: the Gregorian calendar; years start in March, so that the leap day is the last day of a year.
    """
    year, month, day = (int(part) for part in date.split("-"))
    year, month = (year, month - 3) if month > 2 else (year - 1, month + 9)
    return 365 * year + year // 4 - year // 100 + year // 400 + (153 * month + 2) // 5 + day
