"""An EKS cluster that a team has already."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from penstock.infra.parts.nodes import PodPlace
from penstock.infra.parts.part import Part

# Source: Amazon EKS API reference, CreateCluster, name.
CLUSTER_PATTERN = r"^[0-9A-Za-z][A-Za-z0-9_-]{0,99}$"
# Source: IAM API reference, CreateRole, RoleName; Karpenter's CRD takes the name without its path.
ROLE_PATTERN = r"^[A-Za-z0-9+=,.@_-]{1,64}$"
SECURITY_GROUP_PATTERN = r"^sg-[0-9a-f]{8,17}$"
# Source: Amazon EC2 User Guide, "Security group quotas": by default of a network interface.
MAX_SECURITY_GROUPS = 5

Whose = Literal["create", "existing"]


def _groups(ids: list[str]) -> list[str]:
    for id in ids:
        if not re.fullmatch(SECURITY_GROUP_PATTERN, id):
            raise ValueError(f'ids of security groups such as sg-0123456789abcdef0, not "{id}"')
    if len(set(ids)) != len(ids):
        raise ValueError("each security group once")
    return ids


class ExistingCluster(Part):
    """An existing cluster: the stacks read it, add what jobs need, and change nothing of it.

    Args:
        name: of the cluster, in the account and region of the environment.
        karpenter: whether the stacks install Karpenter in it, or it has one.
        node_pools: whether the stacks create the NodePools and their EC2NodeClass, or it has them.
        node_role: name of the IAM role that its Karpenter gives to nodes; None: not needed, because Karpenter or the NodePools are not
            both so.
        security_group_ids: of the nodes; empty: EKS's own for the cluster.
        system_pods: where Prometheus, the Job that applies topics and a Karpenter of the stacks run; by default anywhere.
    """

    name: Annotated[str, Field(pattern=CLUSTER_PATTERN)]
    karpenter: Whose
    node_pools: Whose = "create"
    node_role: Annotated[str, Field(pattern=ROLE_PATTERN)] | None = None
    security_group_ids: Annotated[list[str], Field(max_length=MAX_SECURITY_GROUPS), AfterValidator(_groups)] = []
    system_pods: PodPlace = PodPlace()

    @model_validator(mode="after")
    def _role_of_its_nodes(self) -> Self:
        if self.node_pools == "existing" and self.karpenter == "create":
            raise ValueError("nodePools: create: a Karpenter that the stacks install has no NodePools yet")
        needed = self.karpenter == "existing" and self.node_pools == "create"
        if needed and self.node_role is None:
            raise ValueError("nodeRole, the IAM role of the nodes of the existing Karpenter, for the EC2NodeClass of the stacks")
        if not needed and self.node_role is not None:
            raise ValueError("no nodeRole: it is that of an existing Karpenter's nodes in NodePools of the stacks")
        return self
