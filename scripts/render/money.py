"""Amounts of money and of things as text; the only place where they are rounded."""

from __future__ import annotations

from penstock.sizing.cost.difference import Percent, UsdChange
from penstock.sizing.cost.usd import UsdRange

UNKNOWN = "unknown"
# The units of a bill that are countable things.
_COUNTED = {"node", "cluster", "broker", "partition", "gateway"}


def usd(amount: UsdRange | None, *, decimals: int = 2) -> str:
    """An amount, or its bounds: ``1,234.50``, ``12.00 to 15.50``."""
    if amount is None:
        return UNKNOWN
    return _joined(_unsigned(amount.low, decimals), _unsigned(amount.high, decimals))


def usd_change(change: UsdChange | None, *, decimals: int = 2) -> str:
    """A change with its sign, the lower bound first: ``+12.00``, ``-3.10 to +4.00``, ``0``."""
    if change is None:
        return UNKNOWN
    low, high = sorted((change.low, change.high))
    return _joined(_signed(low, decimals), _signed(high, decimals))


def percent(share: Percent | None) -> str:
    """A share with its sign, the lower bound first: ``+12.3 %``; a dash if there was nothing before."""
    known = [] if share is None else sorted(bound for bound in (share.low, share.high) if bound is not None)
    if not known:
        return "-"
    return f"{_joined(_signed(known[0], 1), _signed(known[-1], 1))} %"


def unit_price(price: UsdRange | None, per: str) -> str:
    """The price of one unit, with all its digits: ``0.1632 / h``."""
    return UNKNOWN if price is None else f"{_joined(f'{price.low:,.6g}', f'{price.high:,.6g}')} / {per}"


def amount(quantity: float) -> str:
    """A quantity: whole numbers whole, others to 4 digits."""
    if quantity == int(quantity):
        return f"{int(quantity):,}"
    return f"{quantity:,.0f}" if quantity >= 1000 else f"{quantity:,.4g}"


def counted(quantity: float, unit: str) -> str:
    """A quantity with its unit: ``1 node``, ``3 nodes``, ``20 GiB``, ``9 x 1,000 requests``."""
    times = " x" if unit[:1].isdigit() else ""
    return f"{amount(quantity)}{times} {unit}{'s' if unit in _COUNTED and quantity != 1 else ''}"


def _unsigned(value: float, decimals: int) -> str:
    least = 10.0**-decimals
    return f"<{least:.{decimals}f}" if 0 < value < least / 2 else f"{value:,.{decimals}f}"


def _signed(value: float, decimals: int) -> str:
    text = f"{value:+,.{decimals}f}"
    return "0" if not text.strip("+-0.,") else text


def _joined(low: str, high: str) -> str:
    return low if low == high else f"{low} to {high}"
