"""Karpenter's decision, in the format of the recorded decisions: JSON with snake_case keys."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict

from penstock.sizing.placement.launch import Launch


class NodeClaim(BaseModel):
    """A node that Karpenter requests.

    Args:
        node_pool: the NodePool.
        pods: number of pods by group.
        instance_types: eligible types, by name.
        launch: the request to EC2.
        at_s: time of the claim, in the staged order; None: in the only batch.
        cheapest_type: the cheapest type of the launch; None if nothing can be launched.
        cheapest_usd_per_h: its price for the launch's capacity type.
        zone: the zone with that price, the first of several.
        zones: the zones that it is limited to, by its NodePool or its pods; None: any.
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
    zones: tuple[str, ...] | None = None


class Reason(BaseModel):
    """Why pods of a group are unschedulable.

    Args:
        group: the pods.
        pool: the NodePool that rejects them; empty: any.
        why: the binding rule, with its numbers.
    """

    model_config = ConfigDict(frozen=True)

    group: str
    pool: str
    why: str


class Decision(BaseModel):
    """The node claims and the unschedulable pods.

    Args:
        node_claims: by NodePool, pods and types, because they have no other identity.
        unschedulable: pods by group.
        existing_nodes: pods placed on existing nodes, by node and group; None if the scenario has no nodes.
        reasons: why pods are unschedulable.
    """

    model_config = ConfigDict(frozen=True)

    node_claims: tuple[NodeClaim, ...]
    unschedulable: dict[str, int]
    existing_nodes: dict[str, dict[str, int]] | None = None
    reasons: tuple[Reason, ...] = ()

    def as_json(self, *, explain: bool = False) -> dict[str, Any]:
        """The decision as a JSON object.

        Args:
            explain: whether to include the reasons and the zones that each claim is limited to.
        """
        document: dict[str, Any] = {
            "node_claims": [_claim_json(claim, explain) for claim in self.node_claims],
            "unschedulable": dict(sorted(self.unschedulable.items())),
        }
        if self.existing_nodes is not None:
            document["existing_nodes"] = self.existing_nodes
        if explain:
            document["reasons"] = [reason.model_dump() for reason in self.reasons]
        return document


def _claim_json(claim: NodeClaim, explain: bool) -> dict[str, Any]:
    document: dict[str, Any] = {
        "node_pool": claim.node_pool,
        "pods": claim.pods,
        "instance_types": list(claim.instance_types),
        "launch": {**claim.launch.model_dump(), "instance_types": list(claim.launch.instance_types)},
    }
    if explain and claim.zones is not None:
        document["zones"] = list(claim.zones)
    if claim.at_s is not None:
        document["at_s"] = claim.at_s
    return document
