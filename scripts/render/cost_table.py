"""A bill, and the difference between two, as tables in a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from penstock.scripts.render.money import amount, counted, percent, unit_price, usd, usd_change
from penstock.scripts.render.screen import Screen
from penstock.scripts.render.table import UNBROKEN, Column, facts, table
from penstock.sizing.cost.billed import Bill, Line, Sum
from penstock.sizing.cost.difference import Change, Difference, Side


def render(bill: Bill, title: str, screen: Screen) -> str:
    """The bill: a headline, its lines, their notes and the sources of the prices.

    Args:
        bill: the bill.
        title: its title, such as ``clicks in production``.
        screen: where it is printed.
    """
    columns = (
        Column("service", wraps=True),
        Column("item", wraps=True),
        Column("quantity", right=True),
        Column("unit", wraps=True),
        Column("USD a unit", right=True),
        Column("USD an hour", right=True),
        Column("USD a month", right=True),
    )
    total = [_label(bill.total), "", "", "", "", usd(bill.total.usd_per_h, decimals=4), usd(bill.total.usd_per_month)]
    lines = table(columns, [_held(row(line)) for line in bill.lines], screen, total=_held(total))
    return "\n".join([headline(bill, title), "", *lines, "", *facts(_footnotes(bill), screen)]) + "\n"


def render_difference(difference: Difference, before: str, after: str, screen: Screen) -> str:
    """The difference: a headline, the items that differ, and what the prices are.

    Args:
        difference: the difference.
        before: what the first bill is of.
        after: what the second bill is of.
        screen: where it goes.
    """
    columns = (
        Column(),
        Column("service", wraps=True),
        Column("item", wraps=True),
        Column("before", right=True),
        Column("after", right=True),
        Column("USD a month", right=True),
        Column("after", right=True),
        Column("difference", right=True),
        Column("share", right=True),
    )
    differing = [change for change in difference.changes if change.kind != "same"]
    rows = [_change_row(change) for change in differing]
    whole_before, whole_after = usd(difference.before.total.usd_per_month), usd(difference.after.total.usd_per_month)
    label = "total" if difference.complete else "known prices"
    total = ["", label, "", "", "", whole_before, whole_after, usd_change(difference.usd_per_month), percent(difference.percent)]
    same = len(difference.changes) - len(differing)
    unchanged = [f"  ({same} unchanged item{'' if same == 1 else 's'} hidden)", ""] if same else []
    lines = table(columns, map(_held, rows), screen, total=_held(total))
    notes = facts(_both_footnotes(difference), screen)
    return "\n".join([*difference_headline(difference, before, after), "", *lines, "", *unchanged, *notes]) + "\n"


def headline(bill: Bill, title: str) -> str:
    """The bill in a line."""
    return f"{title}, {bill.region}: {_total(bill.total, 'month')} USD a month, {_total(bill.total, 'h')} an hour"


def difference_headline(difference: Difference, before: str, after: str) -> list[str]:
    """The difference in two lines."""
    hour = usd_change(difference.usd_per_h, decimals=4)
    share = "" if difference.percent.low is None and difference.percent.high is None else f" ({percent(difference.percent)})"
    return [
        f"from  {before}",
        f"to    {after}: {partly(difference)}{usd_change(difference.usd_per_month)} USD a month{share}, {hour} an hour",
    ]


def notes(bill: Bill) -> Iterator[str]:
    """Notes on single lines."""
    for line in bill.lines:
        basis = {"secondary": "the price is from a secondary source", "assumed": "", "listed": "", "unknown": ""}[line.basis]
        text = "; ".join(part for part in (line.note, basis) if part)
        if text:
            yield f"{line.service} {line.item}: {text}"


def price_sources(*bills: Bill) -> Iterator[str]:
    """Each source of prices with its date, once."""
    by_source: dict[str, list[str]] = {}
    for bill in bills:
        for line in bill.lines:
            services = by_source.setdefault(f"{line.price_date}, {line.price_source}", [])
            if line.service not in services:
                services.append(line.service)
    yield from (f"{', '.join(services)}: {source}" for source, services in by_source.items())


def assumptions(*bills: Bill) -> tuple[str, ...]:
    """The assumptions of the bills, each once."""
    return tuple(dict.fromkeys(text for bill in bills for text in bill.assumptions))


def left_out(total: Sum) -> str:
    """What a sum lacks, in a sentence; empty if nothing."""
    return "" if total.complete else f"at least, for prices are missing: {'; '.join(total.unknown)}"


def side_text(side: Side | None) -> str:
    """An item's monthly cost on one bill; a dash if it is not on it."""
    return "-" if side is None else usd(side.usd_per_month)


def row(line: Line) -> list[str]:
    """The cells of a line of a bill: service, item, quantity, unit, unit price, cost per hour and per month."""
    return [
        line.service,
        line.item,
        amount(line.quantity),
        line.unit,
        unit_price(line.unit_price_usd, line.per),
        usd(line.usd_per_h, decimals=4),
        usd(line.usd_per_month),
    ]


def _change_row(change: Change) -> list[str]:
    sign = {"added": "+", "removed": "-", "changed": "~", "same": ""}[change.kind]
    return [
        sign,
        change.service,
        change.item,
        _quantity(change.before),
        _quantity(change.after),
        side_text(change.before),
        side_text(change.after),
        usd_change(change.usd_per_month),
        percent(change.percent),
    ]


def _held(cells: Iterable[str]) -> list[str]:
    """Amounts that only wrap between their bounds."""
    unbroken = {" to ": f"{UNBROKEN}to ", " x ": f"{UNBROKEN}x ", " / ": f"{UNBROKEN}/{UNBROKEN}", " %": f"{UNBROKEN}%"}
    held = list(cells)
    for text, instead in unbroken.items():
        held = [cell.replace(text, instead) for cell in held]
    return held


def _quantity(side: Side | None) -> str:
    return "-" if side is None else counted(side.quantity, side.unit)


def _total(total: Sum, period: str) -> str:
    text = usd(total.usd_per_month) if period == "month" else usd(total.usd_per_h, decimals=4)
    return text if total.complete else f"at least {text}"


def _label(total: Sum) -> str:
    return "total" if total.complete else "at least"


def partly(difference: Difference) -> str:
    """A qualifier for a difference that lacks a price on either side; empty if all are known."""
    return "" if difference.complete else "of what is known "


def _footnotes(bill: Bill) -> Iterator[tuple[str, str]]:
    texts = [text for text in (left_out(bill.total),) if text]
    yield from _block("notes", [*texts, *notes(bill)])
    yield from _block("prices", price_sources(bill))
    yield from _block("basis", bill.assumptions)


def _both_footnotes(difference: Difference) -> Iterator[tuple[str, str]]:
    sides = (("before", difference.before), ("after", difference.after))
    texts = [f"{when}: {text}" for when, bill in sides if (text := left_out(bill.total))]
    bills = (difference.before, difference.after)
    yield from _block("notes", texts)
    yield from _block("prices", price_sources(*bills))
    yield from _block("basis", assumptions(*bills))


def _block(label: str, texts: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Texts one below the other, the label before the first."""
    yield from ((label if at == 0 else "", text) for at, text in enumerate(texts))
