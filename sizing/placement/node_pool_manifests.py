"""NodePools, as far as they affect placement."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from penstock.sizing.catalog.labels import NODE_POOL, ZONE_ID, is_restricted
from penstock.sizing.placement.manifest import Labels, LabelValue, LiveMetadata, Manifest
from penstock.sizing.placement.resources import NODES, RESOURCES, Amount
from penstock.sizing.placement.selection import ManifestTaint, Requirement, requirement_fault


class NodeClassRef(Manifest):
    """The EC2NodeClass of a NodePool; all of them share the same node settings here."""

    group: str = "karpenter.k8s.aws"
    kind: str = "EC2NodeClass"
    name: LabelValue = "default"


class NodeTemplateSpec(Manifest):
    """Requirements on a NodePool's nodes."""

    requirements: tuple[Requirement, ...] = Field(default=(), strict=False)
    node_class_ref: NodeClassRef = NodeClassRef()
    taints: tuple[ManifestTaint, ...] = Field(default=(), strict=False)
    startup_taints: tuple[ManifestTaint, ...] = Field(default=(), strict=False)
    expire_after: str | None = None
    termination_grace_period: str | None = None


class NodeTemplateMetadata(Manifest):
    """Labels of a NodePool's nodes."""

    labels: Labels = {}
    annotations: dict[str, str] = {}

    @model_validator(mode="after")
    def _karpenter_takes_the_labels(self) -> NodeTemplateMetadata:
        for key in self.labels:
            if is_restricted(key) or key in (NODE_POOL, ZONE_ID):
                raise requirement_fault(f"labels outside of Karpenter's reserved domains, not {key}")
        return self


class NodeTemplate(Manifest):
    """The template of a NodePool's nodes."""

    metadata: NodeTemplateMetadata = NodeTemplateMetadata()
    spec: NodeTemplateSpec


def _check_limits(limits: Mapping[str, int]) -> Mapping[str, int]:
    for name in limits:
        if name not in (*RESOURCES, NODES):
            raise PydanticCustomError("not_modelled", "{need}", {"need": f"a limit of {', '.join((*RESOURCES, NODES))}", "given": name})
    return limits


class NodePoolSpec(Manifest):
    """A NodePool's spec; disruption only affects nodes later."""

    template: NodeTemplate
    limits: Annotated[dict[str, Amount], AfterValidator(_check_limits)] = {}
    weight: Annotated[int, Field(ge=1, le=100)] | None = None
    disruption: dict[str, Any] | None = None


class NodePool(Manifest):
    """A Karpenter NodePool."""

    api_version: Literal["karpenter.sh/v1"] | None = None
    kind: Literal["NodePool"] | None = None
    metadata: LiveMetadata
    spec: NodePoolSpec
    status: dict[str, Any] | None = None

    @property
    def name(self) -> str:
        """Its name."""
        return self.metadata.name
