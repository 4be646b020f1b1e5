"""The rate that a job has to be able to process so that it keeps up, and catches up in time."""

from __future__ import annotations

import math

from penstock.sizing.load.load import Load


def target_rate(load: Load) -> int:
    """What the slots must be able to process, in events a second.

    Source: Flink Kubernetes operator 1.15, AutoScalerUtils.getTargetProcessingCapacity: what waits over the catch-up time, what comes
    during a restart over the same time, and the rate over the utilisation; rounded as Java's Math.round does.
    """
    return math.floor(_exact_target(load) + 0.5)


def scaled_parallelism(parallelism: int, target_events_per_s: float, true_events_per_s: float) -> int:
    """The parallelism for a target, from what is processed at the present one.

    Args:
        parallelism: now.
        target_events_per_s: what has to be processed.
        true_events_per_s: what all the tasks together process when they never wait.

    Source: Flink Kubernetes operator 1.15, JobVertexScaler: ceil(parallelism * target / true processing rate).
    """
    return math.ceil(parallelism * target_events_per_s / true_events_per_s)


def needed_rate(load: Load) -> float:
    """As `target_rate`, but never below what was not rounded: what a plan has to have."""
    return max(float(target_rate(load)), _exact_target(load))


def drain_rate(load: Load) -> float:
    """What has to be processed at the least so that the backlog of a restart is gone in time: the peak and the backlog's share of it."""
    return load.peak_events_per_s + restart_backlog(load) / load.catch_up_s


def restart_backlog(load: Load) -> float:
    """Events that wait once the job runs again after a restart at the peak."""
    return load.backlog_events + load.peak_events_per_s * load.restart_s


def sustained_rate(load: Load, capacity_events_per_s: float) -> float:
    """The highest peak for which a capacity is enough by the rule of `target_rate`; 0 where not even the backlog goes in time."""
    left = capacity_events_per_s - load.backlog_events / load.catch_up_s
    return max(0.0, left / (load.restart_s / load.catch_up_s + 1 / load.utilisation))


def catch_up_s(backlog_events: float, capacity_events_per_s: float, events_per_s: float) -> float | None:
    """How long a backlog takes while events go on coming in; None: for ever."""
    if not backlog_events:
        return 0.0
    spare = capacity_events_per_s - events_per_s
    return backlog_events / spare if spare > 0 else None


def _exact_target(load: Load) -> float:
    rate = load.peak_events_per_s
    return load.backlog_events / load.catch_up_s + rate * load.restart_s / load.catch_up_s + rate / load.utilisation
