"""Capability of the plan: the load that it sustains, a restart, and the loss of spot nodes."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.scripts.render.report.curves import duration
from penstock.scripts.render.report.markup import Markup, element, joined
from penstock.scripts.render.report.tables import Column, facts, table
from penstock.sizing.load.spot_loss import DrainOutcome, LossOutcome
from penstock.sizing.planned import SpotPlan, ThroughputPlan

_COLUMNS = (
    Column("nodes lost", numeric=True),
    Column("executors lost", numeric=True),
    Column("remaining, events/s", numeric=True),
    Column("stalled for", numeric=True),
    Column("new executors after", numeric=True),
    Column("backlog, events", numeric=True),
    Column("oldest event", numeric=True),
    Column("caught up after", numeric=True),
)


def capability_section(throughput: ThroughputPlan) -> Markup:
    """The sustained load and the catch-up time."""
    capability = throughput.capability
    bounded = " (limited by maxOffsetsPerTrigger)" if capability.binding == "batch limit" else ""
    return facts(
        [
            ("needed", f"{throughput.target_events_per_s:,} events/s for a peak of {throughput.peak_events_per_s:,.0f}"),
            (
                "processes",
                f"{capability.capacity_events_per_s:,.0f} events/s at most, {capability.drain_events_per_s:,.0f} while it catches up",
            ),
            ("sustains", f"a peak of {capability.sustained_peak_events_per_s:,.0f} events/s{bounded}, {_average(throughput)} on average"),
            ("restart", f"{capability.backlog_events:,.0f} events of backlog; caught up after {duration(capability.catch_up_s)}"),
        ]
    )


def spot_section(spot: SpotPlan) -> Markup:
    """The effect of losing spot nodes."""
    rows = [_row(one) for one in spot.losses]
    return joined(
        [
            element("h3", f"Loss of spot nodes: executors run on {spot.nodes:,} of them"),
            *([element("p", _drained(spot.drain), class_="aside")] if spot.drain is not None else []),
            *([table(_COLUMNS, rows, caption="Loss of spot nodes at the load's peak")] if rows else []),
        ]
    )


def _average(throughput: ThroughputPlan) -> str:
    return f"{throughput.capability.sustained_events_per_s:,.0f}"


def _row(outcome: LossOutcome) -> Sequence[str]:
    return [
        f"{outcome.lost_nodes:,}",
        f"{outcome.lost_executors:,}",
        f"{outcome.left_events_per_s:,.0f}",
        duration(outcome.stall_s),
        duration(outcome.short_s),
        f"{outcome.lag_events:,.0f}",
        duration(outcome.lag_s),
        duration(outcome.recovery_s),
    ]


def _drained(drain: DrainOutcome) -> str:
    needed, available = duration(drain.needed_s), duration(drain.available_s)
    if drain.fits:
        return f"Executors drain in time: their tasks finish within {needed}, and {available} are available."
    if not drain.available_s:
        start = f"Executors terminate immediately without spark.decommission.enabled: tasks of up to {needed} are repeated elsewhere."
    else:
        start = f"Executors do not drain in time: tasks take up to {needed}, and {available} are available."
    return start + (f" A grace period of {drain.grace_s} s would be sufficient." if drain.grace_s is not None else "")
