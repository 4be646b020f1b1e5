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
    """After minus before, bound by bound: the change if EC2 picks the same instance types both times.

    Args:
        low: USD, difference of the low bounds; negative where the cost decreases.
        high: USD, difference of the high bounds; below `low` where the bounds move closer together.
    """

    low: float
    high: float


class Percent(_Compared):
    """The change as a percentage of before, bound by bound.

    Args:
        low: per cent of the low bound; None if it was 0.
        high: per cent of the high bound; None if it was 0.
    """

    low: float | None
    high: float | None


class Side(_Compared):
    """One item on one bill; lines of the same service and item are merged.

    Args:
        quantity: number of units.
        unit: unit of the first line.
        usd_per_h: None: unknown.
        usd_per_month: None: unknown.
        complete: whether the amounts include everything.
    """

    quantity: float
    unit: str
    usd_per_h: UsdRange | None
    usd_per_month: UsdRange | None
    complete: bool


class Change(_Compared):
    """The change of one item between two bills.

    Args:
        service: AWS service.
        item: billed item.
        kind: ``changed`` if the amount or the quantity differs.
        before: None if the item was added.
        after: None if the item was removed.
        usd_per_h: after minus before; None: unknown.
        usd_per_month: after minus before; None: unknown.
        percent: change per month; None: unknown, or the item was free before.
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
    """Two bills and their differences.

    Args:
        before: the first bill.
        after: the second bill.
        changes: items of both bills by service; within a service the items of the second bill in its order, then removed items.
        usd_per_h: total after minus total before.
        usd_per_month: total after minus total before.
        percent: change relative to the total per month before.
        complete: whether every price on both bills is known; otherwise the difference is partial.
    """

    before: Bill
    after: Bill
    changes: tuple[Change, ...]
    usd_per_h: UsdChange
    usd_per_month: UsdChange
    percent: Percent
    complete: bool


def difference(before: Bill, after: Bill) -> Difference:
    """Compares two bills, which may be of different regions."""
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
    """The amount on one bill; 0 if the item is not on it."""
    return _NOTHING if side is None else side.usd_per_h if field == "usd_per_h" else side.usd_per_month


def _known_change(before: UsdRange | None, after: UsdRange | None) -> UsdChange | None:
    return None if before is None or after is None else _change(before, after)


def _change(before: UsdRange, after: UsdRange) -> UsdChange:
    return UsdChange(low=after.low - before.low, high=after.high - before.high)


def _percent(before: UsdRange, change: UsdChange) -> Percent:
    return Percent(low=_share(change.low, before.low), high=_share(change.high, before.high))


def _share(change: float, before: float) -> float | None:
    return 100 * change / before if before else None
