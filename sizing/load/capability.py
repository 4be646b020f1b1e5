"""The inverse: the load that a plan sustains, and how fast it catches up after a restart."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from penstock.sizing.load.load import Load
from penstock.sizing.load.target_rate import catch_up_s, restart_backlog, sustained_rate


class _Found(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", alias_generator=to_camel, validate_by_name=True)


class Running(BaseModel):
    """The part of a plan that determines the load that it sustains.

    Args:
        tasks: concurrently busy tasks: slots, limited by the partitions.
        trigger_s: trigger interval; None: not bounded.
        max_offsets_per_trigger: for all topics together; None: not bounded.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    tasks: int
    trigger_s: float | None = None
    max_offsets_per_trigger: int | None = None

    @property
    def batch_limit_events_per_s(self) -> float | None:
        """The rate limit set by `max_offsets_per_trigger`; None: no limit."""
        return None if not self.trigger_s or self.max_offsets_per_trigger is None else self.max_offsets_per_trigger / self.trigger_s


class Capability(_Found):
    """The capability of a plan, at the load's restart time, catch-up time and utilisation.

    Args:
        capacity_events_per_s: maximum throughput.
        drain_events_per_s: throughput during catch-up, with bounded micro-batches.
        sustained_peak_events_per_s: the highest peak that keeps the utilisation and catches up in time.
        sustained_events_per_s: the average for that peak, by the load's peak factor.
        binding: ``target rate``, or ``batch limit`` if maxOffsetsPerTrigger is the binding constraint.
        backlog_events: backlog after a restart at the load's own peak.
        catch_up_s: time to drain it; None: never.
    """

    capacity_events_per_s: float
    drain_events_per_s: float
    sustained_peak_events_per_s: float
    sustained_events_per_s: float
    binding: str
    backlog_events: float
    catch_up_s: float | None


class CurvePoint(_Found):
    """A number of executors and its capability at the load's peak; a catch-up of None never ends."""

    executors: int
    capacity_events_per_s: float
    sustained_events_per_s: float
    catch_up_s: float | None


def capability(load: Load, running: Running) -> Capability:
    """Computes the capability of a plan.

    Args:
        load: gives the throughput of slots, the utilisation and the times; its rate is only used for the backlog and the catch-up.
        running: the plan.
    """
    capacity = load.throughput(running.tasks)
    limit = running.batch_limit_events_per_s
    by_target = sustained_rate(load, capacity)
    by_batch = by_target if limit is None else _sustained_by_batches(load, limit)
    peak = min(by_target, by_batch)
    drain = capacity if limit is None else min(capacity, limit)
    backlog = restart_backlog(load)
    return Capability(
        capacity_events_per_s=capacity,
        drain_events_per_s=drain,
        sustained_peak_events_per_s=peak,
        sustained_events_per_s=peak / load.peak_factor,
        binding="batch limit" if by_batch < by_target else "target rate",
        backlog_events=backlog,
        catch_up_s=catch_up_s(backlog, drain, load.peak_events_per_s),
    )


def curves(load: Load, slots_per_executor: int, executors: Iterable[int]) -> tuple[CurvePoint, ...]:
    """Throughput and catch-up time by number of executors, for a chart.

    Args:
        load: the load.
        slots_per_executor: task slots of one executor.
        executors: numbers of executors to evaluate, each 1 or more.
    """
    return tuple(_point(load, slots_per_executor, count) for count in executors)


def _point(load: Load, slots_per_executor: int, executors: int) -> CurvePoint:
    capable = capability(load, Running(tasks=executors * slots_per_executor))
    return CurvePoint(
        executors=executors,
        capacity_events_per_s=capable.capacity_events_per_s,
        sustained_events_per_s=capable.sustained_events_per_s,
        catch_up_s=capable.catch_up_s,
    )


def _sustained_by_batches(load: Load, limit_events_per_s: float) -> float:
    """The peak whose backlog after a restart is drained in time by bounded micro-batches: peak + backlog / catch-up <= limit."""
    return max(0.0, (limit_events_per_s - load.backlog_events / load.catch_up_s) / (1 + load.restart_s / load.catch_up_s))
