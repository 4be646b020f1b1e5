"""Seconds to recover, measured, beside what the plan's model expects of a machine like this one."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from penstock.sizing.load.load import Load
from penstock.sizing.load.spot_loss import SpotFleet, loss
from tests.chaos.killed_cluster import KilledCluster, Struck
from tests.chaos.ledger import Ledger

# The rate has no part in how long a loss stalls the job.
_LOAD = Load(events_per_s=10.0, event_bytes=100, events_per_slot_per_s=1000.0)


def recovery_table(killed: KilledCluster, what: str) -> str:
    """What a cluster came through, and the plan's `spot` line with its figures.

    Args:
        killed: after its strikes.
        what: heading.
    """
    batch_s, events = statistics.median(killed.undisturbed_s), killed.events()
    known = [(one, one.back_s(events)) for one in killed.struck]
    back_s = statistics.median(seconds for _, seconds in known if seconds is not None)
    lines = [
        f"{one.strike.name:<62} {one.strike.victim:<11} {one.recovery_s:10.1f} {'-' if seconds is None else f'{seconds:.1f}':>8}"
        for one, seconds in known
    ]
    some, everything = (_planned_s(killed.executors, lost, batch_s, back_s) for lost in (1, killed.executors))
    return "\n".join(
        [
            f"{what}: {killed.executors} executors, {len(killed.struck)} strikes",
            f"{'at':<62} {'killed':<11} {'next commit':>10} {'executor':>8}, s after the kill",
            *lines,
            f"median {_median(killed.struck):.1f} s, longest {max(one.recovery_s for one in killed.struck):.1f} s to the next commit",
            f"plan: 1 of {killed.executors} spot nodes lost: {some:.1f} s of stall; all lost: {everything:.1f} s",
            f"      (a micro-batch of {batch_s:.1f} s, a new executor after {back_s:.1f} s)",
        ]
    )


def record(killed: KilledCluster, ledger: Ledger) -> None:
    """Tells the ledger the strikes that a cluster came through, and the seconds that the plan's model gives a loss like each.

    Where no executor was lost, as when an attempt is overtaken by another, the plan says nothing.
    """
    batch_s, events = statistics.median(killed.undisturbed_s), killed.events()
    back_s = [seconds for one in killed.struck if (seconds := one.back_s(events)) is not None]
    ledger.times(len(killed.struck))
    for one in killed.struck:
        lost = killed.executors if one.strike.victim == "all" else 1
        planned_s = _planned_s(killed.executors, lost, batch_s, statistics.median(back_s)) if back_s else None
        ledger.recovered(one.recovery_s, planned_s)


def _median(struck: Sequence[Struck]) -> float:
    return statistics.median(one.recovery_s for one in struck)


def _planned_s(executors: int, lost: int, batch_s: float, back_s: float) -> float:
    fleet = SpotFleet(
        executors=executors,
        slots_per_executor=1,
        parallelism=executors,
        nodes=executors,
        trigger_s=batch_s,
        boot_s=0.0,
        executor_start_s=back_s,
    )
    return loss(_LOAD, fleet, lost).stall_s
