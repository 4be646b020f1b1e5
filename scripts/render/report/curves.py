"""Throughput and catch-up time by number of executors, as curves and in numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

from penstock.scripts.render.node_shares import counted
from penstock.scripts.render.report.line_chart import Chart, Level, draw
from penstock.scripts.render.report.markup import Markup, element, joined
from penstock.scripts.render.report.tables import Column, table
from penstock.sizing.load.capability import CurvePoint, curves
from penstock.sizing.load.load import Load
from penstock.sizing.load.target_rate import needed_rate
from penstock.sizing.planned import Plan

_MOST_POINTS = 24

_COLUMNS = (
    Column("executors", numeric=True),
    Column("slots", numeric=True),
    Column("throughput, events/s", numeric=True),
    Column("sustained on average, events/s", numeric=True),
    Column("catch-up after a restart", numeric=True),
    Column("meets the load", whole=True),
)


def section(plan: Plan, load: Load) -> Markup:
    """The curves of a load, with marks at the plan's executors and the load's targets."""
    slots, planned = plan.pods.executor.slots or 1, plan.totals.executors
    needed = needed_rate(load)
    points = curves(load, slots, executor_numbers(planned, load, slots))
    pictures = [
        element("figure", draw(throughput_chart(points, load, planned)), element("figcaption", _throughput_caption(load, needed))),
        element("figure", draw(catch_up_chart(points, load, planned)), element("figcaption", _catch_up_caption(load))),
    ]
    rows = [_row(point, slots, load, planned) for point in points]
    footnote = (
        f"The curves assume {counted(slots, 'slot')} per executor, one partition per slot, and unlimited micro-batches. "
        "The plan accounts for its actual tasks and maxOffsetsPerTrigger, so its numbers may be slightly lower."
    )
    return joined(
        [
            element("p", footnote, class_="aside"),
            element("div", *pictures, class_="charts"),
            table(_COLUMNS, rows, caption="Throughput and catch-up by executors"),
        ]
    )


def executor_numbers(planned: int, load: Load, slots: int) -> list[int]:
    """The numbers of executors to show: from 1 to twice what is planned or needed, including the plan's, at most about 24.

    Args:
        planned: executors of the plan.
        load: the load.
        slots: of one executor.
    """
    needed = -(-(load.slots_for(needed_rate(load)) or planned * slots) // slots)
    last = max(4, 2 * max(planned, min(needed, 4 * planned)))
    step = math.ceil(last / _MOST_POINTS)
    return sorted({1, planned, *range(step, last + 1, step)})


def throughput_chart(points: Sequence[CurvePoint], load: Load, planned: int) -> Chart:
    """The executors' throughput, compared with the peak and with what keeping up and catching up requires."""
    needed, peak = needed_rate(load), load.peak_events_per_s
    levels = (Level(needed, f"needed {needed:,.0f}"), Level(peak, f"peak {peak:,.0f}"))
    values = [(point.executors, point.capacity_events_per_s) for point in points]
    return Chart(
        title=f"Throughput by number of executors; the plan has {planned}",
        across="executors",
        up="throughput, events/s",
        points=values,
        levels=levels,
        marked=planned,
        mark=f"plan: {planned:,}",
        most=max([value for _, value in values] + [level.value for level in levels]) * 1.05,
        text=lambda value: f"{value:,.0f} events/s",
        tick=short,
    )


def catch_up_chart(points: Sequence[CurvePoint], load: Load, planned: int) -> Chart:
    """Time to process a restart's backlog, compared with the load's target; values above three times the target are cut off."""
    values = [(point.executors, None if point.catch_up_s is None else point.catch_up_s / 60) for point in points]
    at_plan = next((value for count, value in values if count == planned and value is not None), 0.0)
    target = load.catch_up_s / 60
    return Chart(
        title=f"Catch-up time by number of executors; the plan has {planned}",
        across="executors",
        up="catch-up after a restart, min",
        points=values,
        levels=(Level(target, f"target {duration(load.catch_up_s)}"),),
        marked=planned,
        mark=f"plan: {planned:,}",
        most=max(2 * target, 1.2 * min(at_plan, 3 * target)),
        text=lambda value: duration(value * 60),
        tick=short,
    )


def duration(seconds: float | None) -> str:
    """A time as ``42 s``, ``12.5 min`` or ``3.2 h``; None: never."""
    if seconds is None:
        return "never"
    if seconds < 120:
        return f"{seconds:,.0f} s"
    size, unit = (60, "min") if seconds < 7200 else (3600, "h")
    return f"{seconds / size:,.1f}".removesuffix(".0") + f" {unit}"


def short(value: float) -> str:
    """A tick's number: ``250``, ``1.5k``, ``2M``."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"


def _row(point: CurvePoint, slots: int, load: Load, planned: int) -> list[str]:
    in_time = point.catch_up_s is not None and point.catch_up_s <= load.catch_up_s
    meets = "yes" if point.capacity_events_per_s >= needed_rate(load) else "meets the load without headroom" if in_time else "no"
    return [
        f"{point.executors:,}{' (plan)' if point.executors == planned else ''}",
        f"{point.executors * slots:,}",
        f"{point.capacity_events_per_s:,.0f}",
        f"{point.sustained_events_per_s:,.0f}",
        duration(point.catch_up_s),
        meets,
    ]


def _throughput_caption(load: Load, needed: float) -> str:
    return (
        f"Peak: {load.peak_events_per_s:,.0f} events/s. Needed: {needed:,.0f} events/s, so that the peak takes at most "
        f"{load.utilisation:.0%} of it and the backlog of a restart is gone in time."
    )


def _catch_up_caption(load: Load) -> str:
    return (
        f"After {duration(load.restart_s)} without processing at the peak, the backlog has to be gone within {duration(load.catch_up_s)}. "
        "Where the curve is missing it takes much longer, or it never ends."
    )
