"""A job's executors in other shapes, as a table."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.scripts.render.money import usd
from penstock.scripts.render.screen import Screen
from penstock.scripts.render.table import Column, table
from penstock.sizing.plan.alternatives import Alternative
from penstock.sizing.units import memory_text

_COLUMNS = [
    Column("executors"),
    Column("memory", right=True),
    Column("needed overhead", right=True),
    Column("nodes", right=True),
    Column("USD a month", right=True),
    Column(""),
]


def render(found: Sequence[Alternative], screen: Screen) -> str:
    """The shapes as text; nothing where there is only the plan's.

    Args:
        found: the shapes.
        screen: where it is printed.
    """
    if len(found) < 2:
        return ""
    rows = [_row(one) for one in found]
    return "\n".join(["", "The same tasks with executors of other sizes, memory and overhead of all executors together:", ""]) + (
        "\n" + "\n".join(table(_COLUMNS, rows, screen)) + "\n"
    )


def _row(one: Alternative) -> list[str]:
    return [
        f"{one.executors:,} x {one.slots} {'slot' if one.slots == 1 else 'slots'}",
        memory_text(one.executor_memory_mib),
        memory_text(one.needed_overhead_mib),
        "-" if one.nodes is None else f"{one.nodes:,}",
        "-" if one.usd_per_month is None else usd(one.usd_per_month),
        "the plan" if one.planned else "" if one.feasible else "not feasible",
    ]
