"""Topology spread constraints and affinity between pods, as Kubernetes writes them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from penstock.sizing.catalog.labels import CAPACITY_TYPE, HOSTNAME, NORMALIZED, WELL_KNOWN, ZONE, is_restricted
from penstock.sizing.placement.manifest import LabelKey, Labels, LabelValue, Manifest
from penstock.sizing.placement.selection import requirement_fault

_MODELLED = (ZONE, HOSTNAME, CAPACITY_TYPE)


def _topology_key(key: str) -> str:
    if key not in _MODELLED and (key in WELL_KNOWN or key in NORMALIZED or is_restricted(key)):
        need = f"{', '.join(_MODELLED)}, or a label of your own; topologies over {key} are not modelled"
        raise PydanticCustomError("not_modelled", "{need}", {"need": need})
    return key


TopologyLabel = Annotated[LabelKey, AfterValidator(_topology_key)]


class LabelSelectorRequirement(Manifest):
    """A requirement on one label of a pod.

    Args:
        key: the label.
        operator: comparison operator.
        values: empty for Exists and DoesNotExist.
    """

    key: LabelKey
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: tuple[LabelValue, ...] = Field(default=(), strict=False)

    @model_validator(mode="after")
    def _values_fit_the_operator(self) -> LabelSelectorRequirement:
        if bool(self.values) != (self.operator in ("In", "NotIn")):
            raise requirement_fault(f"{'no' if self.values else 'at least one'} value with {self.operator}")
        return self


class LabelSelector(Manifest):
    """Selects pods by their labels; an empty one selects all pods of the namespace."""

    match_labels: Labels = {}
    match_expressions: tuple[LabelSelectorRequirement, ...] = Field(default=(), strict=False)


class TopologySpreadConstraint(Manifest):
    """Limits how unevenly pods are spread over the values of a node label.

    Args:
        max_skew: largest allowed difference between the pods of a domain and the global minimum.
        topology_key: the node label.
        when_unsatisfiable: ``ScheduleAnyway`` is treated as required until the pod cannot be placed.
        label_selector: the pods that are counted; none: no pod.
        min_domains: with fewer domains, the global minimum is 0; only with ``DoNotSchedule``.
        match_label_keys: labels whose values of the pod are added to the selector.
        node_affinity_policy: whether only nodes that the pod's selector and affinity allow are counted.
        node_taints_policy: whether only nodes whose taints the pod tolerates are counted.
    """

    max_skew: Annotated[int, Field(ge=1, le=2**31 - 1)]
    topology_key: TopologyLabel
    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"]
    label_selector: LabelSelector | None = None
    min_domains: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None
    match_label_keys: tuple[LabelKey, ...] = Field(default=(), strict=False)
    node_affinity_policy: Literal["Honor", "Ignore"] = "Honor"
    node_taints_policy: Literal["Honor", "Ignore"] = "Ignore"

    @model_validator(mode="after")
    def _kubernetes_takes_it(self) -> TopologySpreadConstraint:
        if self.min_domains is not None and self.when_unsatisfiable != "DoNotSchedule":
            raise requirement_fault("minDomains only with whenUnsatisfiable: DoNotSchedule")
        if self.match_label_keys and self.label_selector is None:
            raise requirement_fault("matchLabelKeys only with a labelSelector")
        return self


class PodAffinityTerm(Manifest):
    """Pods whose domains attract or repel a pod.

    Args:
        topology_key: the node label whose values are the domains.
        label_selector: the other pods; none: no pod.
        namespaces: their namespaces; none: the pod's own.
    """

    topology_key: TopologyLabel
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = Field(default=(), strict=False)


class WeightedPodAffinityTerm(Manifest):
    """A preference: treated as required until the pod cannot be placed."""

    weight: Annotated[int, Field(ge=1, le=100)]
    pod_affinity_term: PodAffinityTerm


class PodAffinity(Manifest):
    """Required and preferred affinity to other pods, or anti-affinity."""

    required: tuple[PodAffinityTerm, ...] = Field(default=(), alias="requiredDuringSchedulingIgnoredDuringExecution", strict=False)
    preferred: tuple[WeightedPodAffinityTerm, ...] = Field(
        default=(), alias="preferredDuringSchedulingIgnoredDuringExecution", strict=False
    )
