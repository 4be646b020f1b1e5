"""The effect of losing spot nodes on a plan."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.sizing.cluster import Cluster
from penstock.sizing.load.load import Load
from penstock.sizing.load.spot_loss import GRACE_S, DrainOutcome, LossOutcome, SpotFleet, drain, loss
from penstock.sizing.plan.job_pods import EXECUTOR
from penstock.sizing.planned import Pods, SpotPlan, StatePlan
from penstock.sizing.planned_nodes import NodeGroup, NodesPlan
from penstock.sizing.spark_settings import SparkSettings
from penstock.sizing.targets import DecidedTargets

# Maximum number of rows: numbers of lost nodes are spaced evenly from one to all.
MOST_LOSSES = 12


def planned_spot(
    targets: DecidedTargets, pods: Pods, settings: SparkSettings, nodes: NodesPlan, cluster: Cluster, state: StatePlan
) -> SpotPlan | None:
    """The effect on the job when spot nodes are lost; None if no executor runs on one.

    Args:
        targets: with the load and the trigger.
        pods: pods of the plan.
        settings: settings of the job, for decommissioning.
        nodes: nodes of the plan; a first start determines which executors share a node.
        cluster: for the time until a replacement node is ready.
        state: state of the plan.
    """
    spot = [count for group in nodes.staged.groups if group.capacity_type == "spot" for count in _executors(group)]
    if not spot:
        return None
    return SpotPlan(nodes=len(spot), drain=_drain(targets, settings), losses=_losses(targets, pods, spot, cluster, state))


def _executors(group: NodeGroup) -> list[int]:
    """Number of executors on each node of a group; empty: the group has no nodes."""
    each = sum(pods.count for pods in group.pods if pods.group == EXECUTOR)
    return [each] * group.count if each else []


def _drain(targets: DecidedTargets, settings: SparkSettings) -> DrainOutcome | None:
    if targets.trigger_s is None:
        return None
    grace_s = GRACE_S if settings.grace_period_s is None else float(settings.grace_period_s)
    return drain(targets.trigger_s, decommission=settings.decommission, grace_s=grace_s)


def _losses(targets: DecidedTargets, pods: Pods, spot: Sequence[int], cluster: Cluster, state: StatePlan) -> tuple[LossOutcome, ...]:
    load: Load | None = targets.load
    if load is None or targets.trigger_s is None:
        return ()
    fleet = SpotFleet(
        executors=pods.executor.count,
        slots_per_executor=pods.executor.slots or 1,
        parallelism=targets.parallelism.value,
        nodes=len(spot),
        on_nodes=tuple(spot),
        trigger_s=targets.trigger_s,
        state_bytes=state.state_bytes or 0,
        boot_s=cluster.boot_s,
    )
    return tuple(loss(load, fleet, lost) for lost in _steps(len(spot)))


def _steps(nodes: int) -> list[int]:
    rows = min(nodes, MOST_LOSSES)
    return sorted({max(1, round(nodes * step / rows)) for step in range(1, rows + 1)})
