"""What Karpenter decides, in the form of the recorded decisions: JSON with snake_case keys."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict

from penstock.sizing.placement.launch import Launch


class NodeClaim(BaseModel):
    """A node that Karpenter asks for.

    Args:
        node_pool: the NodePool.
        pods: by group.
        instance_types: what it may become, by name.
        launch: what is sent to EC2.
        at_s: when, in the staged order; None: in the only batch.
        cheapest_type: the cheapest of the launch's types; None if nothing can be launched.
        cheapest_usd_per_h: its price by the launch's capacity type.
        zone: where that price is, the first of several.
    """

    model_config = ConfigDict(frozen=True)

    node_pool: str
    pods: dict[str, int]
    instance_types: tuple[str, ...]
    launch: Launch
    at_s: float | None = None
    cheapest_type: str | None = None
    cheapest_usd_per_h: float | None = None
    zone: str | None = None


class Reason(BaseModel):
    """Why pods of a group stay unschedulable.

    Args:
        group: the pods.
        pool: the NodePool that can't take them; empty: any.
        why: the rule that binds, with its numbers.
    """

    model_config = ConfigDict(frozen=True)

    group: str
    pool: str
    why: str


class Decision(BaseModel):
    """The node claims, and what stays unschedulable.

    Args:
        node_claims: by NodePool, pods and types, as they can't be told apart otherwise.
        unschedulable: pods by group.
        existing_nodes: pods that go onto nodes that were there, by node and group; None where the scenario has no nodes.
        reasons: why pods stay unschedulable.
    """

    model_config = ConfigDict(frozen=True)

    node_claims: tuple[NodeClaim, ...]
    unschedulable: dict[str, int]
    existing_nodes: dict[str, dict[str, int]] | None = None
    reasons: tuple[Reason, ...] = ()

    def as_json(self, *, explain: bool = False) -> dict[str, Any]:
        """The decision as programs read it.

        Args:
            explain: with the reasons too.
        """
        document: dict[str, Any] = {
            "node_claims": [_claim_json(claim) for claim in self.node_claims],
            "unschedulable": dict(sorted(self.unschedulable.items())),
        }
        if self.existing_nodes is not None:
            document["existing_nodes"] = self.existing_nodes
        if explain:
            document["reasons"] = [reason.model_dump() for reason in self.reasons]
        return document


def _claim_json(claim: NodeClaim) -> dict[str, Any]:
    document: dict[str, Any] = {
        "node_pool": claim.node_pool,
        "pods": claim.pods,
        "instance_types": list(claim.instance_types),
        "launch": {**claim.launch.model_dump(), "instance_types": list(claim.launch.instance_types)},
    }
    if claim.at_s is not None:
        document["at_s"] = claim.at_s
    return document
