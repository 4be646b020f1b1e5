"""What the loss of spot nodes does to a plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sizing.cluster import Cluster
from sizing.job_pods import EXECUTOR
from sizing.load.load import Load
from sizing.load.spot_loss import GRACE_S, LossOutcome, SpotFleet, drain, loss
from sizing.planned import Pods, SpotPlan, StatePlan
from sizing.planned_nodes import NodesPlan, PodsOnNode
from sizing.targets import Targets
from sizing.units import NotAQuantity, duration_ms

_GRACE = "spark.kubernetes.executor.terminationGracePeriodSeconds"
_DECOMMISSION = "spark.decommission.enabled"
# More rows than this say nothing new: they are taken evenly from one node to all.
MOST_LOSSES = 12


def planned_spot(
    targets: Targets, pods: Pods, conf: Mapping[str, str], nodes: NodesPlan, cluster: Cluster, state: StatePlan
) -> SpotPlan | None:
    """What becomes of the job when spot nodes go; None where no executor runs on one.

    Args:
        targets: with the load and the trigger.
        pods: of the plan.
        conf: Spark's settings, for decommissioning.
        nodes: of the plan; a first start decides which executors share a node.
        cluster: for the time until a new node is there.
        state: of the plan.
    """
    spot = sum(group.count for group in nodes.staged.groups if group.capacity_type == "spot" and _has_executor(group.pods))
    if not spot:
        return None
    trigger_s = targets.trigger_s or 0.0
    outcome = drain(trigger_s, decommission=conf.get(_DECOMMISSION, "false").strip().lower() == "true", grace_s=_grace_s(conf))
    return SpotPlan(nodes=spot, drain=outcome, losses=_losses(targets, pods, spot, cluster, state))


def _has_executor(pods: Iterable[PodsOnNode]) -> bool:
    return any(one.group.split("/")[-1] == EXECUTOR for one in pods)


def _losses(targets: Targets, pods: Pods, spot: int, cluster: Cluster, state: StatePlan) -> tuple[LossOutcome, ...]:
    load: Load | None = targets.load
    if load is None or targets.trigger_s is None:
        return ()
    fleet = SpotFleet(
        executors=pods.executor.count,
        slots_per_executor=pods.executor.slots or 1,
        parallelism=targets.parallelism.value,
        nodes=spot,
        trigger_s=targets.trigger_s,
        state_bytes=state.state_bytes or 0,
        boot_s=cluster.boot_s,
    )
    return tuple(loss(load, fleet, lost) for lost in _steps(spot))


def _steps(nodes: int) -> list[int]:
    rows = min(nodes, MOST_LOSSES)
    return sorted({max(1, round(nodes * step / rows)) for step in range(1, rows + 1)})


def _grace_s(conf: Mapping[str, str]) -> float:
    """Spark reads a bare number as seconds here."""
    text = conf.get(_GRACE, "").strip()
    if text.isdigit():
        return float(text)
    try:
        return duration_ms(text) / 1000 if text else GRACE_S
    except NotAQuantity:
        return GRACE_S
