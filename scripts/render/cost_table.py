"""A bill, and the difference between two, as people read them in a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from penstock.scripts.render.aligned import aligned
from penstock.scripts.render.money import amount, counted, percent, unit_price, usd, usd_change
from penstock.sizing.cost.billed import Bill, Line, Sum
from penstock.sizing.cost.difference import Change, Difference, Side

WIDTH = 140
_INDENT = 2


def render(bill: Bill, title: str) -> str:
    """The bill: a headline, its lines, their notes and what the prices are.

    Args:
        bill: the bill.
        title: what it is of: ``clicks in production``.
    """
    head = ["service", "item", "quantity", "unit", "USD a unit", "USD an hour", "USD a month"]
    rows = [row(line) for line in bill.lines]
    total = [_label(bill.total), "", "", "", "", usd(bill.total.usd_per_h, decimals=4), usd(bill.total.usd_per_month)]
    table = aligned([head, *rows, total], right=(2, 4, 5, 6), indent=" " * _INDENT)
    return "\n".join([headline(bill, title), "", *_ruled(table), "", *_footnotes(bill)]) + "\n"


def render_difference(found: Difference, before: str, after: str) -> str:
    """The difference: a headline, the items that differ, and what the prices are.

    Args:
        found: the difference.
        before: what the first bill is of.
        after: what the second bill is of.
    """
    head = ["", "service", "item", "before", "after", "USD a month before", "after", "difference", "share"]
    differing = [change for change in found.changes if change.kind != "same"]
    rows = [_change_row(change) for change in differing]
    whole_before, whole_after = usd(found.before.total.usd_per_month), usd(found.after.total.usd_per_month)
    label = "total" if found.complete else "what is known"
    total = ["", label, "", "", "", whole_before, whole_after, usd_change(found.usd_per_month), percent(found.percent)]
    same = len(found.changes) - len(differing)
    unchanged = [f"  {same} item{'' if same == 1 else 's'} without a change {'is' if same == 1 else 'are'} not shown", ""] if same else []
    table = aligned([head, *rows, total], right=range(3, 9), indent=" " * _INDENT)
    return "\n".join([*difference_headline(found, before, after), "", *_ruled(table), "", *unchanged, *_both_footnotes(found)]) + "\n"


def headline(bill: Bill, title: str) -> str:
    """The bill in a line."""
    return f"{title}, {bill.region}: {_total(bill.total, 'month')} USD a month, {_total(bill.total, 'h')} an hour"


def difference_headline(found: Difference, before: str, after: str) -> list[str]:
    """The difference in two lines."""
    hour = usd_change(found.usd_per_h, decimals=4)
    share = "" if found.percent.low is None and found.percent.high is None else f" ({percent(found.percent)})"
    return [
        f"from  {before}",
        f"to    {after}: {partly(found)}{usd_change(found.usd_per_month)} USD a month{share}, {hour} an hour",
    ]


def notes(bill: Bill) -> Iterator[str]:
    """What a reader should know of single lines."""
    for line in bill.lines:
        basis = {"secondary": "the price is from a secondary source", "assumed": "", "listed": "", "unknown": ""}[line.basis]
        text = "; ".join(part for part in (line.note, basis) if part)
        if text:
            yield f"{line.service} {line.item}: {text}"


def price_sources(*bills: Bill) -> Iterator[str]:
    """Each source of prices with its date, once."""
    told: dict[str, list[str]] = {}
    for bill in bills:
        for line in bill.lines:
            services = told.setdefault(f"{line.price_date}, {line.price_source}", [])
            if line.service not in services:
                services.append(line.service)
    yield from (f"{', '.join(services)}: {source}" for source, services in told.items())


def assumptions(*bills: Bill) -> tuple[str, ...]:
    """What the bills rest on, each once."""
    return tuple(dict.fromkeys(text for bill in bills for text in bill.assumptions))


def left_out(total: Sum) -> str:
    """What a sum misses, in a sentence; empty where nothing."""
    return "" if total.complete else f"at least, for prices are missing: {'; '.join(total.unknown)}"


def side_text(side: Side | None) -> str:
    """An item's month on one bill; a dash where it is not on it."""
    return "-" if side is None else usd(side.usd_per_month)


def row(line: Line) -> list[str]:
    """A line of a bill in words: service, item, quantity, unit, price of a unit, an hour and a month."""
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


def _quantity(side: Side | None) -> str:
    return "-" if side is None else counted(side.quantity, side.unit)


def _total(total: Sum, period: str) -> str:
    text = usd(total.usd_per_month) if period == "month" else usd(total.usd_per_h, decimals=4)
    return text if total.complete else f"at least {text}"


def _label(total: Sum) -> str:
    return "total" if total.complete else "at least"


def partly(found: Difference) -> str:
    """A word before a difference that misses a price on either side; empty where all are known."""
    return "" if found.complete else "of what is known "


def _ruled(table: Sequence[str]) -> list[str]:
    """The table with a line under its head and above its total."""
    rule = " " * _INDENT + "-" * (max(len(row) for row in table) - _INDENT)
    return [table[0], rule, *table[1:-1], rule, table[-1]]


def _footnotes(bill: Bill) -> list[str]:
    texts = [text for text in (left_out(bill.total),) if text]
    return [*_block("notes", [*texts, *notes(bill)]), *_block("prices", price_sources(bill)), *_block("basis", bill.assumptions)]


def _both_footnotes(found: Difference) -> list[str]:
    sides = (("before", found.before), ("after", found.after))
    texts = [f"{when}: {text}" for when, bill in sides if (text := left_out(bill.total))]
    bills = (found.before, found.after)
    return [*_block("notes", texts), *_block("prices", price_sources(*bills)), *_block("basis", assumptions(*bills))]


def _block(label: str, texts: Iterator[str] | Sequence[str]) -> list[str]:
    """Texts under one another, wrapped, the label before the first."""
    indent = " " * 10
    rows = [
        textwrap.fill(text, WIDTH, initial_indent=indent, subsequent_indent=indent + "  ", break_long_words=False, break_on_hyphens=False)
        for text in texts
    ]
    return [f"  {label:<8}{rows[0][10:]}", *rows[1:]] if rows else []
