"""The cost as horizontal bars, one for each line of the bill: full up to the lowest price, pale up to the highest."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.scripts.render.cost_table import left_out, notes
from penstock.scripts.render.money import counted, unit_price, usd
from penstock.scripts.render.report.markup import Markup, element, joined
from penstock.scripts.render.report.tables import Column, bullets, table
from penstock.sizing.cost.billed import Bill, Line
from penstock.sizing.cost.usd import UsdRange

# Length of a bar for the highest price of the most expensive line; the drawing is scaled to the width of the page.
FULL = 1000.0
_HEIGHT = 10.0
# Lines too cheap to be visible keep a minimum length.
_LEAST = 2.0

_COLUMNS = (
    Column("line"),
    Column("quantity", numeric=True),
    Column("USD a unit", numeric=True),
    Column("USD an hour", numeric=True),
    Column("USD a month", numeric=True),
    Column("price", whole=True),
    Column("price date", whole=True),
    Column("source", numeric=True),
)


def section(bill: Bill) -> Markup:
    """The bill as bars and in numbers."""
    dearest = max((line.usd_per_month.high for line in bill.lines if line.usd_per_month is not None), default=0.0)
    total = bill.total
    known = "" if total.complete else "at least "
    sums = [known + usd(total.usd_per_h, decimals=4), known + usd(total.usd_per_month)]
    sources = list(dict.fromkeys(line.price_source for line in bill.lines))
    rows = [_row(line, sources.index(line.price_source) + 1) for line in bill.lines]
    footnotes = [text for text in (left_out(total), *notes(bill)) if text]
    return joined(
        [
            element("p", f"{known}{usd(total.usd_per_month)} USD a month, {sums[0]} an hour, in {bill.region}.", class_="lead"),
            element("div", *_services(bill, dearest), class_="bars"),
            element("p", "Solid: lowest price. Pale: up to the highest price, if it is a range.", class_="aside"),
            table(_COLUMNS, rows, total=["total", "", "", *sums, "", "", ""], caption="Cost by line"),
            element("p", "Sources of the prices:", class_="aside"),
            element("ol", *(element("li", source) for source in sources), class_="aside"),
            bullets([*footnotes, *bill.assumptions], class_="aside"),
        ]
    )


def bar(usd_per_month: UsdRange, dearest: float) -> Markup:
    """One bar as SVG.

    Args:
        usd_per_month: of the line.
        dearest: the highest price of all lines, which is `FULL` long.
    """
    low, high = (FULL * value / dearest if dearest else 0.0 for value in (usd_per_month.low, usd_per_month.high))
    parts = [
        element("rect", x=0, y=0, width=FULL, height=_HEIGHT, class_="track"),
        element("rect", x=0, y=0, width=_seen(high), height=_HEIGHT, class_="high"),
        element("rect", x=0, y=0, width=_seen(low), height=_HEIGHT, class_="low"),
    ]
    label = f"{usd(usd_per_month)} USD a month"
    size = f"0 0 {FULL:.0f} {_HEIGHT:.0f}"
    return element("svg", element("title", label), *parts, viewBox=size, preserveAspectRatio="none", role="img", aria_label=label)


def _services(bill: Bill, dearest: float) -> Iterator[Markup]:
    for service, total in bill.services.items():
        known = "" if total.complete else "at least "
        text = f"{known}{usd(total.usd_per_month)}"
        yield element("div", element("span", service), element("span", text, class_="n"), class_="service")
        yield from (_bar_row(line, dearest) for line in bill.lines if line.service == service)


def _bar_row(line: Line, dearest: float) -> Markup:
    if line.usd_per_month is None:
        drawn, text = element("span", "unknown price", class_="aside"), "unknown"
    else:
        drawn, text = bar(line.usd_per_month, dearest), usd(line.usd_per_month)
    return element("div", element("span", line.item), drawn, element("span", text, class_="n"), class_="bar")


def _seen(length: float) -> float:
    return max(length, _LEAST) if length else 0.0


def _row(line: Line, source: int) -> list[str]:
    return [
        f"{line.service}: {line.item}",
        counted(line.quantity, line.unit),
        unit_price(line.unit_price_usd, line.per),
        usd(line.usd_per_h, decimals=4),
        usd(line.usd_per_month),
        line.basis,
        line.price_date,
        str(source),
    ]
