"""The effect of losing spot nodes: the lag, its duration, and whether a drain completes before the node is terminated."""

from __future__ import annotations

import math
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from penstock.sizing.load.load import Load
from penstock.sizing.load.target_rate import catch_up_s

# Secondary: from a pending pod to a ready node, about a minute for EKS with AL2023; an input, because images and DaemonSets differ.
DEFAULT_BOOT_S = 60.0
# Ours: start of the executor's pod and JVM until it accepts tasks, with the image already on the node.
DEFAULT_EXECUTOR_START_S = 20.0
# Secondary: Amazon S3, "Performance design patterns": one connection reads 85 to 90 MB/s; each task reads state over one connection.
DEFAULT_RELOAD_MB_PER_S = 85.0
# Source: EC2's documentation: the interruption notice is issued two minutes in advance, best effort.
NOTICE_S = 120.0
# Ours: from EventBridge through the queue to Karpenter's drain; Karpenter polls continuously.
DEFAULT_REACTION_S = 10.0
# Source: Spark 4.1, spark.kubernetes.executor.terminationGracePeriodSeconds.
GRACE_S = 30.0

_Seconds = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]


class _Found(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", alias_generator=to_camel, validate_by_name=True)


class SpotFleet(BaseModel):
    """The executors and their spot nodes.

    Args:
        executors: executors of the job.
        slots_per_executor: task slots of one executor.
        parallelism: concurrently busy tasks.
        nodes: nodes that run the executors.
        on_nodes: executors on each node, if known; empty: spread evenly. Executors beyond their sum are not affected.
        trigger_s: the longest micro-batch; the one running when a node is lost is repeated.
        state_bytes: state of the whole query; the lost executors' share is read again.
        boot_s: time until a replacement node is ready.
        executor_start_s: time until a new executor accepts tasks.
        reload_mb_per_s: rate at which one task reads a checkpoint, 10^6 bytes per second.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    executors: Annotated[int, Field(ge=1)]
    slots_per_executor: Annotated[int, Field(ge=1)]
    parallelism: Annotated[int, Field(ge=1)]
    nodes: Annotated[int, Field(ge=1)]
    on_nodes: tuple[Annotated[int, Field(ge=0)], ...] = ()
    trigger_s: _Seconds = 10.0
    state_bytes: Annotated[int, Field(ge=0)] = 0
    boot_s: _Seconds = DEFAULT_BOOT_S
    executor_start_s: _Seconds = DEFAULT_EXECUTOR_START_S
    reload_mb_per_s: Annotated[float, Field(gt=0, allow_inf_nan=False)] = DEFAULT_RELOAD_MB_PER_S


class LossOutcome(_Found):
    """The lag after nodes are lost at the load's peak.

    Args:
        lost_nodes: number of lost nodes.
        lost_executors: maximum number of lost executors, assuming the nodes with the most executors.
        left_events_per_s: throughput of the remaining executors until replacements start.
        stall_s: time without progress: the batch is repeated and state is read again.
        short_s: time until the new executors accept tasks.
        lag_events: maximum lag in events.
        lag_s: approximate age of the oldest waiting event: the lag over the rate.
        recovery_s: time from the start of the new executors until the lag is 0; None: never.
    """

    lost_nodes: int
    lost_executors: int
    left_events_per_s: float
    stall_s: float
    short_s: float
    lag_events: float
    lag_s: float
    recovery_s: float | None


class DrainOutcome(_Found):
    """Whether an executor's tasks and blocks are migrated before its node is terminated.

    Args:
        needed_s: time for the longest task and the migration of blocks.
        available_s: time from the SIGTERM to the end of the pod's grace period or of the notice; 0 if decommissioning is off, because
            the executor then exits immediately.
        fits: whether `needed_s` is at most `available_s`.
        grace_s: the grace period that would suffice; None: no period within the notice does.
    """

    needed_s: float
    available_s: float
    fits: bool
    grace_s: int | None


def loss(load: Load, fleet: SpotFleet, lost_nodes: int) -> LossOutcome:
    """Computes the lag when nodes are lost simultaneously, at the load's peak.

    A micro-batch query commits every batch, so a loss costs at most the running batch and reading the lost state again.

    Args:
        load: the load.
        fleet: the executors and their nodes.
        lost_nodes: 0 or more; capped at the number of nodes.
    """
    lost = min(lost_nodes, fleet.nodes)
    executors = _lost_executors(fleet, lost)
    left_slots = (fleet.executors - executors) * fleet.slots_per_executor
    left = load.throughput(min(fleet.parallelism, left_slots)) if left_slots else 0.0
    arrival_s = fleet.boot_s + fleet.executor_start_s if executors else 0.0
    stall_s = _stall_s(fleet, executors, left_slots, arrival_s) if executors else 0.0
    rate = load.peak_events_per_s
    lag = rate * stall_s + max(0.0, rate - left) * max(0.0, arrival_s - stall_s)
    capacity = load.throughput(min(fleet.parallelism, fleet.executors * fleet.slots_per_executor))
    return LossOutcome(
        lost_nodes=lost,
        lost_executors=executors,
        left_events_per_s=left,
        stall_s=stall_s,
        short_s=arrival_s,
        lag_events=lag,
        lag_s=lag / rate,
        recovery_s=catch_up_s(lag, capacity, rate),
    )


def drain(
    task_s: float,
    *,
    blocks_s: float = 0.0,
    decommission: bool = False,
    grace_s: float = GRACE_S,
    notice_s: float = NOTICE_S,
    reaction_s: float = DEFAULT_REACTION_S,
) -> DrainOutcome:
    """Computes whether a drain completes in time.

    Args:
        task_s: duration of the longest task: at most a micro-batch.
        blocks_s: time to migrate cached and shuffle blocks; a streaming query has few.
        decommission: ``spark.decommission.enabled``; off by default, in which case tasks are lost and run again elsewhere.
        grace_s: ``spark.kubernetes.executor.terminationGracePeriodSeconds``.
        notice_s: from the notice to the termination of the node.
        reaction_s: from the notice to the SIGTERM.
    """
    needed = task_s + blocks_s
    within_notice = max(0.0, notice_s - reaction_s)
    available = min(grace_s, within_notice) if decommission else 0.0
    grace = math.ceil(needed) if math.ceil(needed) <= within_notice else None
    return DrainOutcome(needed_s=needed, available_s=available, fits=needed <= available, grace_s=grace)


def _lost_executors(fleet: SpotFleet, lost_nodes: int) -> int:
    """Executors on the nodes with the most of them."""
    on_nodes = fleet.on_nodes or (-(-fleet.executors // fleet.nodes),) * fleet.nodes
    return min(fleet.executors, sum(sorted(on_nodes, reverse=True)[:lost_nodes]))


def _stall_s(fleet: SpotFleet, lost: int, left_slots: int, arrival_s: float) -> float:
    """Repeats one batch, with the lost state read by the remaining tasks, or by the new ones once started if none remain."""
    lost_bytes = fleet.state_bytes * lost / fleet.executors
    readers = left_slots or fleet.executors * fleet.slots_per_executor
    reload_s = lost_bytes / (readers * fleet.reload_mb_per_s * 1_000_000)
    return fleet.trigger_s + reload_s + (0.0 if left_slots else arrival_s)
