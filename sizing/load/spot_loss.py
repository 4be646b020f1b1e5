"""What the loss of spot nodes costs: the lag, how long it lasts, and whether a drain ends before the node is gone."""

from __future__ import annotations

import math
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from penstock.sizing.load.load import Load
from penstock.sizing.load.target_rate import catch_up_s

# Secondary: from a pending pod to a node that runs it, for EKS with AL2023 about a minute; an input, for images and DaemonSets differ.
DEFAULT_BOOT_S = 60.0
# Ours: the executor's pod and its JVM until it takes tasks, the image being on the node.
DEFAULT_EXECUTOR_START_S = 20.0
# Secondary: Amazon S3, "Performance design patterns": one connection reads 85 to 90 MB/s; one a task reads state.
DEFAULT_RELOAD_MB_PER_S = 85.0
# Source: EC2's documentation: the interruption notice comes two minutes before, best effort.
NOTICE_S = 120.0
# Ours: from EventBridge over the queue to Karpenter's drain; it asks for messages all the time.
DEFAULT_REACTION_S = 10.0
# Source: Spark 4.1, spark.kubernetes.executor.terminationGracePeriodSeconds.
GRACE_S = 30.0

_Seconds = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]


class _Found(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", alias_generator=to_camel, validate_by_name=True)


class SpotFleet(BaseModel):
    """The executors and the spot nodes that they run on.

    Args:
        executors: of the job.
        slots_per_executor: task slots of one.
        parallelism: tasks that have something to do at a time.
        nodes: that the executors are spread over.
        on_nodes: executors on each of them, where that is known; empty: spread evenly. Executors beyond their sum are safe.
        trigger_s: the longest micro-batch; the one that runs when a node goes is done anew.
        state_bytes: of the whole query; what the lost executors had of it is read again.
        boot_s: until a new node is there.
        executor_start_s: until a new executor takes tasks.
        reload_mb_per_s: that one task reads of a checkpoint, 10^6 bytes a second.
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
    """What becomes of the lag when nodes are lost at the load's peak.

    Args:
        lost_nodes: of the fleet.
        lost_executors: at most, the nodes being those with the most executors.
        left_events_per_s: what the others process until there are new ones.
        stall_s: nothing new is processed: the batch is done anew and state is read again.
        short_s: until the new executors take tasks.
        lag_events: the most that wait.
        lag_s: how old the oldest of them is, about: the lag over the rate.
        recovery_s: from the new executors on until nothing waits; None: never.
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
    """Whether an executor's tasks and blocks are safe before its node is gone.

    Args:
        needed_s: the longest task and the moving of blocks.
        available_s: from the SIGTERM to the end of the pod's grace period or of the notice; 0 where decommissioning is off, for then the
            executor ends at once.
        fits: whether the first is at most the second.
        grace_s: the grace period with which it would fit; None: no period fits into the notice.
    """

    needed_s: float
    available_s: float
    fits: bool
    grace_s: int | None


def loss(load: Load, fleet: SpotFleet, lost_nodes: int) -> LossOutcome:
    """What becomes of the lag when nodes are lost at once, at the load's peak.

    A micro-batch query commits every batch, so a loss costs at most the batch that runs, and the reading of the state that was lost.

    Args:
        load: the load.
        fleet: the executors and their nodes.
        lost_nodes: 0 or more; more than there are counts as all.
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
    """Whether a drain ends in time.

    Args:
        task_s: the longest task: at most a micro-batch.
        blocks_s: for cached and shuffle blocks to move; a streaming query has few.
        decommission: ``spark.decommission.enabled``; off by default, and then the tasks are lost and run again elsewhere.
        grace_s: ``spark.kubernetes.executor.terminationGracePeriodSeconds``.
        notice_s: from the notice to the end of the node.
        reaction_s: from the notice to the SIGTERM.
    """
    needed = task_s + blocks_s
    within_notice = max(0.0, notice_s - reaction_s)
    available = min(grace_s, within_notice) if decommission else 0.0
    grace = math.ceil(needed) if math.ceil(needed) <= within_notice else None
    return DrainOutcome(needed_s=needed, available_s=available, fits=needed <= available, grace_s=grace)


def _lost_executors(fleet: SpotFleet, lost_nodes: int) -> int:
    """Those of the nodes that have the most."""
    on_nodes = fleet.on_nodes or (-(-fleet.executors // fleet.nodes),) * fleet.nodes
    return min(fleet.executors, sum(sorted(on_nodes, reverse=True)[:lost_nodes]))


def _stall_s(fleet: SpotFleet, lost: int, left_slots: int, arrival_s: float) -> float:
    """One batch anew, and the lost state read by the tasks that are left; with none left, by the new ones once they are there."""
    lost_bytes = fleet.state_bytes * lost / fleet.executors
    readers = left_slots or fleet.executors * fleet.slots_per_executor
    reload_s = lost_bytes / (readers * fleet.reload_mb_per_s * 1_000_000)
    return fleet.trigger_s + reload_s + (0.0 if left_slots else arrival_s)
