"""Karpenter's NodePool.

Source: the CRD karpenter.sh_nodepools of Karpenter 1.14.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.infra.parts.nodes import NODE_CLASS, Disruption, Pool, Requirement, Taint

API_VERSION = "karpenter.sh/v1"


def node_pool(pool: Pool, limits: Mapping[str, str] | None = None, *, node_class: str = NODE_CLASS) -> dict[str, Any]:
    """The manifest of a pool of the environment.

    Args:
        pool: the pool.
        limits: resource -> quantity, for a pool without its own.
        node_class: name of the EC2NodeClass of its nodes.

    Returns:
        A mapping in the form of the Kubernetes API, without the fields that the environment leaves out.
    """
    template: dict[str, Any] = {"spec": _node(pool, node_class)}
    if pool.labels:
        template["metadata"] = {"labels": dict(pool.labels)}
    spec: dict[str, Any] = {"template": template, "disruption": _disruption(pool.disruption)}
    if pool.limits or limits:
        spec["limits"] = dict(pool.limits or limits or {})
    if pool.weight is not None:
        spec["weight"] = pool.weight
    return {"apiVersion": API_VERSION, "kind": "NodePool", "metadata": {"name": pool.name}, "spec": spec}


def duration(ms: int | str) -> str:
    """A duration in Go's format, in the largest unit that divides it: ``5m``, ``720h``; ``Never`` is kept.

    Args:
        ms: milliseconds, or ``Never``.
    """
    if isinstance(ms, str):
        return ms
    return next(f"{ms // size}{unit}" for unit, size in (("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)) if ms % size == 0)


def _node(pool: Pool, node_class: str) -> dict[str, Any]:
    node: dict[str, Any] = {
        "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": node_class},
        "requirements": [_requirement(requirement) for requirement in pool.requirements],
        "expireAfter": duration(pool.expire_after),
    }
    if pool.taints:
        node["taints"] = [_taint(taint) for taint in pool.taints]
    return node


def _requirement(requirement: Requirement) -> dict[str, Any]:
    written: dict[str, Any] = {"key": requirement.key, "operator": requirement.operator}
    if requirement.values:
        written["values"] = list(requirement.values)
    if requirement.min_values is not None:
        written["minValues"] = requirement.min_values
    return written


def _taint(taint: Taint) -> dict[str, str]:
    return {"key": taint.key, **({"value": taint.value} if taint.value else {}), "effect": taint.effect}


def _disruption(disruption: Disruption) -> dict[str, Any]:
    written: dict[str, Any] = {
        "consolidationPolicy": disruption.consolidation_policy,
        "consolidateAfter": duration(disruption.consolidate_after),
    }
    if disruption.budgets:
        written["budgets"] = [budget.model_dump(by_alias=True, exclude_defaults=True) for budget in disruption.budgets]
    return written
