"""Bills and their differences as people read them."""

from __future__ import annotations

import re

import pytest
from hypothesis import HealthCheck, given, settings

from penstock.scripts.render import cost_markdown, cost_table
from penstock.scripts.render.money import amount, counted, percent, unit_price, usd, usd_change
from penstock.scripts.render.screen import Screen
from penstock.sizing.cost.bill import bill
from penstock.sizing.cost.billed import Bill
from penstock.sizing.cost.difference import Percent, UsdChange, difference
from penstock.sizing.cost.prices import shipped
from penstock.sizing.cost.usage import ClusterUsage, NodeUsage, Usage
from penstock.sizing.cost.usd import UsdRange
from tests.sizing.cost.usages import CATALOG, EVERYTHING, usages

# Nothing wraps on it.
WIDE = Screen(200)


def of(usage: Usage) -> Bill:
    return bill(usage, shipped(), CATALOG, 0.4)


def executors(count: int, *types: str) -> Usage:
    nodes = NodeUsage(label="executors", instance_types=types or ("m1.cheap",), capacity_type="on-demand", count=count)
    return Usage(nodes=(nodes,), clusters=(ClusterUsage(label="cluster"),))


@pytest.mark.parametrize(
    ("range_", "text"),
    [
        (UsdRange.exactly(1234.5), "1,234.50"),
        (UsdRange(low=1, high=2.345), "1.00 to 2.35"),
        (UsdRange(low=1.001, high=1.002), "1.00"),
        (UsdRange.exactly(0.004), "<0.01"),
        (UsdRange.exactly(0), "0.00"),
        (None, "unknown"),
    ],
)
def test_an_amount_is_rounded_to_cents_and_never_to_nothing(range_: UsdRange | None, text: str) -> None:
    assert usd(range_) == text


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (UsdChange(low=12, high=12), "+12.00"),
        (UsdChange(low=5, high=-3), "-3.00 to +5.00"),
        (UsdChange(low=0, high=0.001), "0"),
        (UsdChange(low=-0.0, high=0), "0"),
        (None, "unknown"),
    ],
)
def test_a_change_has_its_sign(change: UsdChange | None, text: str) -> None:
    assert usd_change(change) == text


def test_shares_units_and_quantities_read_well() -> None:
    assert percent(Percent(low=12.34, high=-5)) == "-5.0 to +12.3 %"
    assert percent(Percent(low=None, high=None)) == percent(None) == "-"
    assert unit_price(UsdRange(low=0.0004, high=0.1632), "h") == "0.0004 to 0.1632 / h"
    assert [amount(number) for number in (3.0, 12.4, 6903.42, 1e6)] == ["3", "12.4", "6,903", "1,000,000"]
    assert [counted(1, "node"), counted(2, "node"), counted(2, "GiB")] == ["1 node", "2 nodes", "2 GiB"]


def test_a_bill_as_a_table_lines_up_and_names_what_its_prices_are() -> None:
    text = cost_table.render(of(EVERYTHING), "clicks in production", WIDE)
    rows = text.splitlines()
    assert rows[0].startswith("clicks in production, us-east-1: ")
    head = next(row for row in rows if "USD a month" in row and "service" in row)
    body = [row for row in rows if re.match(r"  (EC2|EBS|EKS|MSK|S3|NAT|Data|total)", row)]
    assert len(body) == len(of(EVERYTHING).lines) + 1
    # Every amount ends where its head ends.
    assert {len(row) for row in body} == {len(head)}
    for said in ("2026-11-20, a catalog for tests", "2026-11-21, infracost", "730 hours", "secondary source"):
        assert said in text


def test_a_total_with_a_hole_says_at_least_and_what_is_missing() -> None:
    text = cost_table.render(of(executors(1, "m1.unpriced")), "clicks", WIDE)
    assert text.splitlines()[0] == "clicks, us-east-1: at least 74.60 USD a month, at least 0.1022 an hour"
    assert "at least, for prices are missing: EC2: executors, on-demand" in text
    assert "\n  at least  " in text
    assert " unknown" in text


def test_a_difference_shows_what_differs_and_counts_the_rest() -> None:
    text = cost_table.render_difference(difference(of(executors(2)), of(executors(3))), "A", "B", WIDE)
    assert text.startswith("from  A\nto    B: +74.60 USD a month (+33.6 %), +0.1022 an hour\n")
    assert re.search(r"~  EC2 +executors, on-demand +2 nodes +3 nodes +146\.00 +219\.00 +\+73\.00 +\+50\.0 %", text)
    assert "(1 unchanged item hidden)" in text
    assert "cluster, standard support" not in text


def test_what_comes_and_goes_has_a_sign() -> None:
    text = cost_table.render_difference(difference(of(Usage()), of(executors(1))), "A", "B", WIDE)
    assert re.search(r"\+  EKS +cluster, standard support +- +1 cluster +- +73\.00 +\+73\.00 +-", text)
    back = cost_table.render_difference(difference(of(executors(1)), of(Usage())), "A", "B", WIDE)
    assert re.search(r"-  EKS +cluster, standard support +1 cluster +- +73\.00 +- +-73\.00 +-100\.0 %", back)


def test_no_difference_is_said() -> None:
    result = difference(of(executors(1)), of(executors(1)))
    assert "B: 0 USD a month (0 %), 0 an hour" in cost_table.render_difference(result, "A", "B", WIDE)
    assert "No item differs." in cost_markdown.render_difference(result, "A", "B")


def tables(text: str) -> list[list[str]]:
    """The tables of a Markdown text, each as its rows."""
    blocks = re.split(r"\n(?!\|)", text)
    return [rows for block in blocks if len(rows := [row for row in block.splitlines() if row.startswith("|")]) > 1]


def test_a_comment_has_the_totals_the_changes_and_the_rest_folded() -> None:
    text = cost_markdown.render_difference(difference(of(executors(2)), of(executors(3))), "A", "B")
    assert text.startswith("## Cost: +74.60 USD a month (+33.6 %)\n\nFrom A to B.\n\n")
    assert "| before | 0.3044 | 222.20 |" in text
    assert "| difference | +0.1022 | +74.60 |" in text
    assert "| changed | EC2 | executors, on-demand | 2 nodes | 3 nodes | 146.00 | 219.00 | +73.00 | +50.0 % |" in text
    assert text.count("<details>") == text.count("</details>") == 2
    assert "2026-11-20, a catalog for tests" in text


def test_every_row_of_a_table_has_as_many_cells_as_its_head() -> None:
    result = difference(of(executors(2)), of(EVERYTHING))
    for text in (cost_markdown.render_difference(result, "A", "B"), cost_markdown.render(of(EVERYTHING), "A")):
        assert len(tables(text)) >= 3
        for rows in tables(text):
            assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows}) == 1


def test_names_from_a_file_can_do_nothing_to_the_comment() -> None:
    odd = Usage(clusters=(ClusterUsage(label="a|b <img src=x> `c` *d*\n# e"),))
    text = cost_markdown.render(of(odd), "[x](http://evil) | y")
    assert "\\[x\\](http://evil) \\| y" in text
    assert "a\\|b \\<img src=x\\> \\`c\\` \\*d\\* # e, standard support" in text
    assert "\n# e" not in text


def test_a_comment_on_one_bill_sums_its_services() -> None:
    text = cost_markdown.render(of(executors(1)), "clicks in production")
    assert text.startswith("## Cost of clicks in production\n")
    assert "| EKS | 73.00 |" in text
    assert "| total | 0.2022 | 147.60 |" in text


@settings(deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow])
@given(usages, usages)
def test_any_two_bills_can_be_shown_and_what_is_not_known_is_said(first: Usage, second: Usage) -> None:
    before, after = of(first), of(second)
    result = difference(before, after)
    shown = {
        cost_table.render(after, "B", WIDE): after.total.complete,
        cost_markdown.render(after, "B"): after.total.complete,
        cost_table.render_difference(result, "A", "B", WIDE): result.complete,
        cost_markdown.render_difference(result, "A", "B"): result.complete,
    }
    for text, complete in shown.items():
        assert text.endswith("\n") and not text.endswith("\n\n")
        assert ("prices are missing" in text) == (not complete)
