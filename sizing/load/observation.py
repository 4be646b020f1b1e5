"""From the micro-batches of a job that has more to read than it can, to its rates."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import NamedTuple

from penstock.sizing.load.spread import Line, Spread, line_through

# Ours: of fewer micro-batches a quartile says nothing.
LEAST_MICRO_BATCHES = 4
# Ours: from this share of a machine's cores on, more slots bring no more: the rest is lost to scheduling and waiting.
SATURATED = 0.85


class MicroBatch(NamedTuple):
    """A micro-batch that read rows.

    Args:
        rows: that it read, more than 0.
        seconds: from its trigger to its commit.
        cpu_s: CPU seconds of all of the job's processes in that time; None: not measured.
        others_cpu_s: CPU seconds of everything else on the machine; None: not measured.
    """

    rows: int
    seconds: float
    cpu_s: float | None = None
    others_cpu_s: float | None = None


class SlotsRun(NamedTuple):
    """A number of slots, and what the job did on it.

    Args:
        slots: tasks at a time.
        batches: in a steady state, without those that warm up.
    """

    slots: int
    batches: Sequence[MicroBatch]

    @property
    def line(self) -> Line:
        """Seconds of a micro-batch by its rows."""
        return line_through([(batch.rows, batch.seconds) for batch in self.batches])

    @property
    def full(self) -> Sequence[MicroBatch]:
        """The micro-batches with at least half of the rows of the largest: what they took is due to rows."""
        most = max(batch.rows for batch in self.batches)
        return [batch for batch in self.batches if 2 * batch.rows >= most]

    def events_per_s(self, fixed_s: float) -> Spread:
        """Events per second of all slots, without the fixed time of a micro-batch.

        Args:
            fixed_s: that time, in seconds.
        """
        # A micro-batch that took no longer than the fixed part would have an infinite rate: half of its time is its rows'.
        times = [max(batch.seconds - fixed_s, batch.seconds / 2) / batch.rows for batch in self.full]
        return Spread.of(times).inverse()

    @property
    def events_per_cpu_s(self) -> Spread | None:
        """Events per CPU second of the job's processes, without those of the fixed part of a micro-batch; None: not measured."""
        points = [(batch.rows, batch.cpu_s) for batch in self.batches if batch.cpu_s]
        if not points:
            return None
        fixed_s = line_through(points).fixed
        # As of the seconds of `events_per_s`.
        costs = [max(batch.cpu_s - fixed_s, batch.cpu_s / 2) / batch.rows for batch in self.full if batch.cpu_s]
        return Spread.of(costs).inverse() if costs else None

    @property
    def busy_cores(self) -> float | None:
        """Cores that the job's processes kept busy; None: not measured."""
        return _busy([(batch.cpu_s, batch.seconds) for batch in self.full])

    @property
    def others_busy_cores(self) -> float | None:
        """Cores that all else on the machine kept busy meanwhile; None: not measured."""
        return _busy([(batch.others_cpu_s, batch.seconds) for batch in self.full])


class Rates(NamedTuple):
    """What the runs of a job say together.

    Args:
        events_per_slot_per_s: of a slot that has a core, from the fewest slots.
        events_per_cpu_s: from the most slots, where the cores are busiest, without the fixed CPU time of a micro-batch; None: not measured.
        batch_overhead_s: fixed time of a micro-batch.
    """

    events_per_slot_per_s: Spread
    events_per_cpu_s: Spread | None
    batch_overhead_s: Spread


def rates_of(runs: Sequence[SlotsRun]) -> Rates:
    """The rates of a job.

    - ``fixed``: the median over the runs of the fixed part of seconds = fixed + rows * per row (`line_through`);
    - a slot: (seconds - fixed) / rows of the full micro-batches of the run with the fewest slots, its inverse divided by the slots;
    - a CPU second: (CPU seconds - their own fixed part) / rows of the full micro-batches of the run with the most slots, its inverse.

    Args:
        runs: at least one, each with at least one micro-batch.
    """
    ordered = sorted(runs, key=lambda run: run.slots)
    fixed = Spread.of(run.line.fixed for run in ordered)
    fewest = ordered[0]
    rate = fewest.events_per_s(fixed.typical)
    return Rates(
        events_per_slot_per_s=rate.with_each(Spread.exactly(fewest.slots), lambda events, slots: events / slots),
        events_per_cpu_s=ordered[-1].events_per_cpu_s,
        batch_overhead_s=fixed,
    )


def predicted_events_per_s(rates: Rates, slots: int, cores: float) -> float:
    """Events per second of a number of slots on a number of cores, without the fixed time of micro-batches: the slots' own rate, or what
    the cores compute, whichever is less.

    Args:
        rates: of the job.
        slots: tasks at a time.
        cores: for the job alone.
    """
    by_slots = slots * rates.events_per_slot_per_s.typical
    return by_slots if rates.events_per_cpu_s is None else min(by_slots, cores * rates.events_per_cpu_s.typical)


def cores_for_job(run: SlotsRun, cores: int) -> float:
    """The cores of a machine that a job can have, beside what else is busy for it there: the broker and S3 of a local run.

    The job's share of all CPU time of the run, of `SATURATED` of the cores: all of them are never busy.

    Args:
        run: with CPU times.
        cores: of the machine.
    """
    own, others = run.busy_cores, run.others_busy_cores
    if not own or others is None:
        return float(cores)
    return max(own, SATURATED * cores * own / (own + others))


def _busy(times: Sequence[tuple[float | None, float]]) -> float | None:
    cores = [cpu_s / seconds for cpu_s, seconds in times if cpu_s is not None and seconds > 0]
    return statistics.median(cores) if cores else None
