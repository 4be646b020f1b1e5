"""A bill, and the difference between two, as a comment on a pull request: a one-line summary, details folded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from penstock.scripts.render import cost_table, markdown
from penstock.scripts.render.money import counted, percent, usd, usd_change
from penstock.sizing.cost.billed import Bill
from penstock.sizing.cost.difference import Change, Difference, Side


def render(bill: Bill, title: str) -> str:
    """The bill.

    Args:
        bill: the bill.
        title: its title.
    """
    rows = [
        f"## Cost of {markdown.text(title)}",
        "",
        *markdown.table(["", "USD an hour", "USD a month"], [_total_row("total", bill)]),
        "",
        *markdown.table(
            ["service", "USD a month"],
            ([service, _partial(part.complete) + usd(part.usd_per_month)] for service, part in bill.services.items()),
        ),
        "",
        *markdown.folded(f"All {len(bill.lines)} items", _lines(bill)),
        *markdown.folded("Notes, prices and their dates", markdown.bullets([*_missing(bill), *cost_table.notes(bill), *_sources(bill)])),
    ]
    return "\n".join(rows) + "\n"


def render_difference(difference: Difference, before: str, after: str) -> str:
    """The difference.

    Args:
        difference: the difference.
        before: what the first bill is of.
        after: what the second bill is of.
    """
    share = "" if percent(difference.percent) == "-" else f" ({percent(difference.percent)})"
    differing = [change for change in difference.changes if change.kind != "same"]
    bills = (difference.before, difference.after)
    rows = [
        f"## Cost: {cost_table.partly(difference)}{usd_change(difference.usd_per_month)} USD a month{share}",
        "",
        f"From {markdown.text(before)} to {markdown.text(after)}.",
        "",
        *markdown.table(["", "USD an hour", "USD a month"], _totals(difference)),
        "",
        *(_changes(differing) if differing else ["No item differs."]),
        "",
        *markdown.folded(f"All {len(difference.after.lines)} items after the change", _lines(difference.after)),
        *markdown.folded(
            "Notes, prices and their dates", markdown.bullets([*_missing(*bills), *cost_table.notes(difference.after), *_sources(*bills)])
        ),
    ]
    return "\n".join(rows) + "\n"


def _totals(compared: Difference) -> list[list[str]]:
    difference = ["difference", usd_change(compared.usd_per_h, decimals=4), usd_change(compared.usd_per_month)]
    return [_total_row("before", compared.before), _total_row("after", compared.after), difference]


def _total_row(label: str, bill: Bill) -> list[str]:
    least = _partial(bill.total.complete)
    return [label, least + usd(bill.total.usd_per_h, decimals=4), least + usd(bill.total.usd_per_month)]


def _changes(changes: Sequence[Change]) -> list[str]:
    head = ["", "service", "item", "before", "after", "USD a month before", "after", "difference", "share"]
    rows = (
        [
            change.kind,
            change.service,
            change.item,
            _quantity(change.before),
            _quantity(change.after),
            cost_table.side_text(change.before),
            cost_table.side_text(change.after),
            usd_change(change.usd_per_month),
            percent(change.percent),
        ]
        for change in changes
    )
    return markdown.table(head, rows, right=range(3, 9))


def _lines(bill: Bill) -> list[str]:
    head = ["service", "item", "quantity", "unit", "USD a unit", "USD an hour", "USD a month", "price of"]
    rows = ([*cost_table.row(line), f"{line.price_date}, {line.basis}"] for line in bill.lines)
    return markdown.table(head, rows, right=(2, 4, 5, 6))


def _sources(*bills: Bill) -> Iterator[str]:
    yield from (f"prices of {source}" for source in cost_table.price_sources(*bills))
    yield from cost_table.assumptions(*bills)


def _missing(*bills: Bill) -> Iterator[str]:
    yield from dict.fromkeys(text for bill in bills if (text := cost_table.left_out(bill.total)))


def _quantity(side: Side | None) -> str:
    return "-" if side is None else counted(side.quantity, side.unit)


def _partial(complete: bool) -> str:
    return "" if complete else "at least "
