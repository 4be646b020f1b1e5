"""The difference between two bills, item by item."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from penstock.sizing.cost.billed import Bill, Line, Service, sum_of
from penstock.sizing.cost.usd import UsdRange


class _Compared(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, validate_by_name=True)


class UsdChange(_Compared):
    """After less before, bound by bound: what changes if EC2 chooses alike both times.

    Args:
        low: USD, of the low bounds; below 0 where it gets cheaper.
        high: USD, of the high bounds; it may lie below `low` where the bounds come closer together.
    """

    low: float
    high: float


class Percent(_Compared):
    """The change as a share of before, bound by bound.

    Args:
        low: per cent of the low bound; None: it was 0.
        high: per cent of the high bound; None: it was 0.
    """

    low: float | None
    high: float | None


class Side(_Compared):
    """One item on one bill; lines of the same service and item are one.

    Args:
        quantity: of `unit`.
        unit: of the first line.
        usd_per_h: None: unknown.
        usd_per_month: None: unknown.
        complete: whether nothing is missing in the amounts.
    """

    quantity: float
    unit: str
    usd_per_h: UsdRange | None
    usd_per_month: UsdRange | None
    complete: bool


class Change(_Compared):
    """One item on both bills.

    Args:
        service: of AWS.
        item: what is paid for.
        kind: ``changed`` where the amount of money or the quantity differs.
        before: None where the item was added.
        after: None where the item was removed.
        usd_per_h: after less before; None: unknown.
        usd_per_month: after less before; None: unknown.
        percent: of the month; None: unknown, or there was nothing before.
    """

    service: Service
    item: str
    kind: Literal["same", "changed", "added", "removed"]
    before: Side | None
    after: Side | None
    usd_per_h: UsdChange | None
    usd_per_month: UsdChange | None
    percent: Percent | None


class Difference(_Compared):
    """Two bills and what lies between them.

    Args:
        before: the first bill.
        after: the second bill.
        changes: the items of both by service; in each those of the second bill first and in its order, then those that were removed.
        usd_per_h: total after less total before.
        usd_per_month: total after less total before.
        percent: of the month's total before.
        complete: whether every price on both bills is known; else the difference leaves something out.
    """

    before: Bill
    after: Bill
    changes: tuple[Change, ...]
    usd_per_h: UsdChange
    usd_per_month: UsdChange
    percent: Percent
    complete: bool


def difference(before: Bill, after: Bill) -> Difference:
    """Compares two bills; they may be of two regions."""
    old, new = _sides(before), _sides(after)
    usd_per_month = _change(before.total.usd_per_month, after.total.usd_per_month)
    return Difference(
        before=before,
        after=after,
        changes=tuple(_item(key, old.get(key), new.get(key)) for key in _by_service((*new, *old))),
        usd_per_h=_change(before.total.usd_per_h, after.total.usd_per_h),
        usd_per_month=usd_per_month,
        percent=_percent(before.total.usd_per_month, usd_per_month),
        complete=before.total.complete and after.total.complete,
    )


def _by_service(keys: Iterable[tuple[Service, str]]) -> list[tuple[Service, str]]:
    order = get_args(Service)
    return sorted(dict.fromkeys(keys), key=lambda key: order.index(key[0]))


def _sides(bill: Bill) -> dict[tuple[Service, str], Side]:
    lines: dict[tuple[Service, str], list[Line]] = {}
    for line in bill.lines:
        lines.setdefault((line.service, line.item), []).append(line)
    return {key: _side(same) for key, same in lines.items()}


def _side(lines: list[Line]) -> Side:
    known = [line for line in lines if line.usd_per_h is not None]
    summed = sum_of(lines)
    return Side(
        quantity=sum(line.quantity for line in lines),
        unit=lines[0].unit,
        usd_per_h=summed.usd_per_h if known else None,
        usd_per_month=summed.usd_per_month if known else None,
        complete=summed.complete,
    )


_NOTHING = UsdRange.exactly(0.0)


def _item(key: tuple[Service, str], before: Side | None, after: Side | None) -> Change:
    service, item = key
    hour_before, hour_after = _usd(before, "usd_per_h"), _usd(after, "usd_per_h")
    month_before, month_after = _usd(before, "usd_per_month"), _usd(after, "usd_per_month")
    usd_per_month = _known_change(month_before, month_after)
    return Change(
        service=service,
        item=item,
        kind=_kind(before, after),
        before=before,
        after=after,
        usd_per_h=_known_change(hour_before, hour_after),
        usd_per_month=usd_per_month,
        percent=_percent(month_before, usd_per_month) if before and month_before and usd_per_month else None,
    )


def _kind(before: Side | None, after: Side | None) -> Literal["same", "changed", "added", "removed"]:
    if before is None:
        return "added"
    if after is None:
        return "removed"
    return "same" if before == after else "changed"


def _usd(side: Side | None, field: Literal["usd_per_h", "usd_per_month"]) -> UsdRange | None:
    """The amount of one side; 0 where the item is not on the bill."""
    return _NOTHING if side is None else side.usd_per_h if field == "usd_per_h" else side.usd_per_month


def _known_change(before: UsdRange | None, after: UsdRange | None) -> UsdChange | None:
    return None if before is None or after is None else _change(before, after)


def _change(before: UsdRange, after: UsdRange) -> UsdChange:
    return UsdChange(low=after.low - before.low, high=after.high - before.high)


def _percent(before: UsdRange, change: UsdChange) -> Percent:
    return Percent(low=_share(change.low, before.low), high=_share(change.high, before.high))


def _share(change: float, before: float) -> float | None:
    return 100 * change / before if before else None
