"""How a job's executors are spread over nodes and zones, and the topology spread constraints that say so to Kubernetes and Karpenter.

Sizing places pods with the same constraints that the manifests have, so that a plan has the nodes that Karpenter creates.

Source: Kubernetes' documentation, "Pod Topology Spread Constraints"; karpenter v1.14.1 (``topologygroup.go``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from penstock.sizing.catalog.labels import HOSTNAME, ZONE

Spreading = Literal["preferred", "required"]

# The most by which the executors of two domains differ.
MAX_SKEW = 1
_WHEN_UNSATISFIABLE: dict[Spreading, str] = {"preferred": "ScheduleAnyway", "required": "DoNotSchedule"}


class ExecutorSpread(BaseModel):
    """The domains over which the executors of a job are spread.

    Args:
        nodes: one executor of the job on each node; None: as many as fit.
        zones: as many executors of the job in each zone, give or take one; None: where nodes are the cheapest.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    nodes: Spreading | None = None
    zones: Spreading | None = None

    @property
    def text(self) -> str:
        """For people: ``nodes (required) and zones (preferred)``; empty if they are not spread."""
        return " and ".join(f"{domain} ({asked})" for domain, asked in (("nodes", self.nodes), ("zones", self.zones)) if asked is not None)


def spread_constraints(spread: ExecutorSpread, selector: Mapping[str, str], executors: int, zones: int) -> list[dict[str, Any]]:
    """The topology spread constraints of the executors' pods, in the form of the Kubernetes API.

    A required one has ``minDomains``. Without it Kubernetes counts only nodes that exist: on a first start, the first node to be ready is
    the only domain, and takes as many executors as fit.

    Args:
        spread: of the job.
        selector: labels of the job's executors in their namespace.
        executors: number of executors.
        zones: number of the environment's zones.
    """
    return [
        _constraint(label, asked, selector, least)
        for label, asked, least in ((HOSTNAME, spread.nodes, executors), (ZONE, spread.zones, zones))
        if asked is not None
    ]


def _constraint(label: str, asked: Spreading, selector: Mapping[str, str], min_domains: int) -> dict[str, Any]:
    constraint: dict[str, Any] = {
        "maxSkew": MAX_SKEW,
        "topologyKey": label,
        "whenUnsatisfiable": _WHEN_UNSATISFIABLE[asked],
        "labelSelector": {"matchLabels": dict(selector)},
        # Drivers' and system nodes are no domains: with their taints they would stay at 0 executors for good.
        "nodeTaintsPolicy": "Honor",
    }
    # Kubernetes takes it with DoNotSchedule only.
    return {**constraint, "minDomains": min_domains} if asked == "required" else constraint
