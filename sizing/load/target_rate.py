"""The throughput that a job needs to keep up and to catch up in time."""

from __future__ import annotations

import math

from penstock.sizing.load.load import Load


def target_rate(load: Load) -> int:
    """The required throughput of the slots, in events per second.

    Source: Flink Kubernetes operator 1.15, AutoScalerUtils.getTargetProcessingCapacity: the backlog over the catch-up time, the events
    that arrive during a restart over the same time, and the rate over the utilisation; rounded as Java's Math.round does.
    """
    return math.floor(_exact_target(load) + 0.5)


def scaled_parallelism(parallelism: int, target_events_per_s: float, true_events_per_s: float) -> int:
    """The parallelism for a target, from the throughput at the current parallelism.

    Args:
        parallelism: current parallelism.
        target_events_per_s: required throughput.
        true_events_per_s: throughput of all tasks together when they are never idle.

    Source: Flink Kubernetes operator 1.15, JobVertexScaler: ceil(parallelism * target / true processing rate).
    """
    return math.ceil(parallelism * target_events_per_s / true_events_per_s)


def needed_rate(load: Load) -> float:
    """As `target_rate`, but never below the unrounded value: the requirement of a plan."""
    return max(float(target_rate(load)), _exact_target(load))


def drain_rate(load: Load) -> float:
    """The minimum throughput to drain the backlog of a restart in time: the peak and the backlog over the catch-up time."""
    return load.peak_events_per_s + restart_backlog(load) / load.catch_up_s


def restart_backlog(load: Load) -> float:
    """The backlog in events when the job resumes after a restart at the peak."""
    return load.backlog_events + load.peak_events_per_s * load.restart_s


def sustained_rate(load: Load, capacity_events_per_s: float) -> float:
    """The highest peak for which a capacity suffices by the rule of `target_rate`; 0 if not even the backlog is drained in time."""
    left = capacity_events_per_s - load.backlog_events / load.catch_up_s
    return max(0.0, left / (load.restart_s / load.catch_up_s + 1 / load.utilisation))


def catch_up_s(backlog_events: float, capacity_events_per_s: float, events_per_s: float) -> float | None:
    """The time to drain a backlog while events keep arriving; None: never."""
    if not backlog_events:
        return 0.0
    spare = capacity_events_per_s - events_per_s
    return backlog_events / spare if spare > 0 else None


def _exact_target(load: Load) -> float:
    rate = load.peak_events_per_s
    return load.backlog_events / load.catch_up_s + rate * load.restart_s / load.catch_up_s + rate / load.utilisation
