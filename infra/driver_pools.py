"""Protection of drivers' nodes from disruption by Karpenter.

A driver that loses its node restarts its query: state is reloaded, and the work of the current micro-batch is repeated. An executor is
one of
many. So only the loss of a machine may move a driver, unless the environment sets a time for disruptions.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.infra.environment import Environment
from penstock.infra.errors import DriversDisturbed
from penstock.infra.manifests.node_pool import duration
from penstock.infra.parts.nodes import Disruption, Pool
from penstock.sizing.errors import raise_all
from penstock.sizing.plan.job_pods import DRIVER
from penstock.sizing.planned_nodes import NodesPlan

_NEVER = "Never"
_UNDERUTILIZED, _DRIFTED = "Underutilized", "Drifted"
_NONE_AT_A_TIME = ("0", "0%")
_FIX = (
    'budgets: [{nodes: "1", reasons: [Empty]}, {nodes: "0", reasons: [Underutilized, Drifted]}], and add a schedule and '
    "duration to the second one to allow disruption in a maintenance window"
)


def leave_drivers_alone(environment: Environment, nodes: NodesPlan) -> None:
    """Rejects pools of drivers whose nodes Karpenter may disrupt while drivers run on them.

    Args:
        environment: the environment of the pools.
        nodes: of all its jobs.

    Raises:
        DriversDisturbed: INF-031; several are raised as `Faults`.
    """
    placed = (*nodes.one_batch.groups, *nodes.staged.groups)
    used = {group.node_pool for group in placed if any(pods.group.split("/")[-1] == DRIVER for pods in group.pods)}
    pools = environment.spec.nodes.pools if environment.spec.nodes else []
    raise_all(
        environment.locate(fault, "spec", "nodes", "pools", index)
        for index, pool in enumerate(pools)
        if pool.name in used
        for fault in _faults(index, pool)
    )


def _faults(index: int, pool: Pool) -> Iterator[DriversDisturbed]:
    path = f"spec.nodes.pools[{index}] ({pool.name})"
    if pool.expire_after != _NEVER:
        need = "Never: expired nodes are drained regardless of budgets, and drivers run in this pool"
        given = duration(pool.expire_after)
        yield DriversDisturbed(
            path=f"{path}.expireAfter", given=given, need=need, fix="expireAfter: Never; nodes are then replaced by upgrades"
        )
    for reason in _allowed(pool.disruption):
        need = f'a budget of nodes "0" for {reason}: drivers run in this pool and must not be evicted for that reason'
        yield DriversDisturbed(path=f"{path}.disruption.budgets", given=_text(pool.disruption), need=need, fix=_FIX)


def _allowed(disruption: Disruption) -> list[str]:
    """The reasons for which nodes with pods may be disrupted. A budget with a schedule leaves the rest of the time open, deliberately."""
    consolidates = disruption.consolidation_policy != "WhenEmpty" and disruption.consolidate_after != _NEVER
    held = [budget for budget in disruption.budgets if budget.nodes in _NONE_AT_A_TIME]
    reasons = (*((_UNDERUTILIZED,) if consolidates else ()), _DRIFTED)
    return [reason for reason in reasons if not any(not budget.reasons or reason in budget.reasons for budget in held)]


def _text(disruption: Disruption) -> str:
    budgets = (f"{budget.nodes} for {', '.join(budget.reasons) or 'any reason'}" for budget in disruption.budgets)
    return "; ".join(budgets) or "none, which allows 10% of the nodes at a time, for any reason"
