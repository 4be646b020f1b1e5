"""The manifests that a scenario is made of, as far as they bear on the placement.

Fields that Karpenter's scheduler does not look at (an image, a command, a disruption budget) are read and left alone; every other field
is refused, so that nothing that would change the answer is left out in silence.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from sizing.catalog.labels import CAPACITY_TYPE, NODE_POOL, NORMALIZED, ON_DEMAND, RESERVED, SPOT, TENANCY, ZONE_ID, is_restricted
from sizing.placement.quantities import NANO, nano
from sizing.placement.requirements import Allowed, allowed
from sizing.placement.taints import Taint, Toleration
from sizing.units import NotAQuantity

CPU = "cpu"
MEMORY = "memory"
PODS = "pods"
EPHEMERAL_STORAGE = "ephemeral-storage"
NODES = "nodes"
NVIDIA_GPU = "nvidia.com/gpu"
AMD_GPU = "amd.com/gpu"
GAUDI = "habana.ai/gaudi"
NEURON = "aws.amazon.com/neuron"
NEURON_CORE = "aws.amazon.com/neuroncore"
# Devices: whole ones only.
DEVICES = (NVIDIA_GPU, AMD_GPU, GAUDI, NEURON, NEURON_CORE)
RESOURCES = (CPU, MEMORY, PODS, EPHEMERAL_STORAGE, *DEVICES)

# Source: Kubernetes' rules for label values and the name part of keys.
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?", re.ASCII)
_DOMAIN = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*", re.ASCII)
_INTEGER = re.compile(r"\+?[0-9]{1,19}", re.ASCII)
_BOUNDS = ("Gt", "Lt", "Gte", "Lte")
# Source: karpenter v1.14.1: of these labels at least one value must be a known one.
_KNOWN_VALUES = {CAPACITY_TYPE: {SPOT, ON_DEMAND, RESERVED}, TENANCY: {"default", "dedicated"}}


class Manifest(BaseModel):
    """A part of a manifest: camelCase in the document, strict, without fields that are not listed."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", alias_generator=to_camel, populate_by_name=True)


def _amount(value: object) -> int:
    try:
        return nano(value)
    except NotAQuantity as fault:
        raise PydanticCustomError("quantity", "{need}", {"need": fault.need, "fix": fault.fix}) from None


def _text_of(amount_nano: int) -> str:
    whole, rest = divmod(amount_nano, NANO)
    return str(whole) if not rest else f"{amount_nano // 10**6}m" if amount_nano % 10**6 == 0 else f"{amount_nano}n"


Amount = Annotated[int, BeforeValidator(_amount), PlainSerializer(_text_of, return_type=str)]


def _check_amounts(amounts: Mapping[str, int]) -> Mapping[str, int]:
    for name, amount in amounts.items():
        if name not in RESOURCES or name == PODS:
            known = ", ".join(resource for resource in RESOURCES if resource != PODS)
            raise PydanticCustomError("not_modelled", "{need}", {"need": f"a resource out of {known}", "given": name})
        if name in DEVICES and amount % NANO:
            raise PydanticCustomError("quantity", "{need}", {"need": f"whole pieces of {name}", "fix": "write an integer"})
    return amounts


Amounts = Annotated[dict[str, Amount], AfterValidator(_check_amounts)]


def _label_key(text: str) -> str:
    domain, slash, name = text.rpartition("/")
    good = len(name) <= 63 and _NAME.fullmatch(name) and (not slash or (len(domain) <= 253 and _DOMAIN.fullmatch(domain)))
    if not good:
        raise PydanticCustomError(
            "requirement", "{need}", {"need": "a label's name: letters, digits, '-', '_', '.', with a domain and '/' before it or none"}
        )
    return text


def _label_value(text: str) -> str:
    if text and (len(text) > 63 or not _NAME.fullmatch(text)):
        raise PydanticCustomError("requirement", "{need}", {"need": "a label's value: at most 63 letters, digits, '-', '_', '.'"})
    return text


LabelKey = Annotated[str, AfterValidator(_label_key)]
LabelValue = Annotated[str, AfterValidator(_label_value)]
Labels = dict[LabelKey, LabelValue]
Name = Annotated[str, Field(min_length=1, max_length=253)]


def _requirement_fault(need: str) -> PydanticCustomError:
    return PydanticCustomError("requirement", "{need}", {"need": need})


class NodeSelectorRequirement(Manifest):
    """One requirement of a pod on the labels of its node.

    Args:
        key: the label.
        operator: how its value is compared.
        values: none for Exists and DoesNotExist, one integer for Gt and Lt.
    """

    key: LabelKey
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
    values: tuple[LabelValue, ...] = Field(default=(), strict=False)

    @model_validator(mode="after")
    def _values_fit_the_operator(self) -> NodeSelectorRequirement:
        _check_values(self.key, self.operator, self.values)
        return self

    @property
    def allowed(self) -> Allowed:
        """The values that it allows."""
        return allowed(self.operator, self.values)


class Requirement(Manifest):
    """One requirement of a NodePool.

    Args:
        key: the label, a well-known one or the pool's own.
        operator: how its value is compared.
        values: none for Exists and DoesNotExist, one integer for Gt, Lt, Gte and Lte.
        min_values: how many different values a claim's instance types must have, 1 to 50.
    """

    key: LabelKey
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte"]
    values: tuple[LabelValue, ...] = Field(default=(), strict=False)
    min_values: Annotated[int, Field(ge=1, le=50)] | None = None

    @model_validator(mode="after")
    def _karpenter_takes_it(self) -> Requirement:
        _check_values(self.key, self.operator, self.values)
        key = NORMALIZED.get(self.key, self.key)
        if is_restricted(key) or key == NODE_POOL:
            raise _requirement_fault("a well-known label, or one out of Karpenter's own domains")
        known = _KNOWN_VALUES.get(key)
        if self.operator == "In" and known and not known & set(self.values):
            raise _requirement_fault(f"at least one of {', '.join(sorted(known))}")
        if self.operator == "In" and self.min_values is not None and len(self.values) < self.min_values:
            raise _requirement_fault(f"at least as many values as minValues = {self.min_values}")
        return self

    @property
    def allowed(self) -> Allowed:
        """The values that it allows."""
        return allowed(self.operator, self.values, self.min_values)


def _check_values(key: str, operator: str, values: tuple[str, ...]) -> None:
    if NORMALIZED.get(key, key) == ZONE_ID:
        raise PydanticCustomError(
            "not_modelled", "{need}", {"need": "the zone's name: which zone has which id differs from account to account"}
        )
    if operator in ("In", "NotIn") and not values:
        raise _requirement_fault(f"at least one value with {operator}")
    if operator in ("Exists", "DoesNotExist") and values:
        raise _requirement_fault(f"no values with {operator}")
    if operator in _BOUNDS and not (len(values) == 1 and _INTEGER.fullmatch(values[0]) and int(values[0]) < 2**63):
        raise _requirement_fault(f"one integer of 0 or more, as text, with {operator}")


class ManifestTaint(Manifest):
    """A taint of a NodePool.

    Args:
        key: name.
        value: may be empty.
        effect: what it does to pods that don't tolerate it.
    """

    key: LabelKey
    value: LabelValue = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]

    @property
    def taint(self) -> Taint:
        """The taint."""
        return Taint(self.key, self.value, self.effect)


class ManifestToleration(Manifest):
    """What a pod tolerates.

    Args:
        key: of the taint; empty: all keys, with Exists.
        operator: Equal unless given.
        value: of the taint, for Equal.
        effect: of the taint; empty: all.
        toleration_seconds: bears on evictions only.
    """

    key: Annotated[str, AfterValidator(lambda key: _label_key(key) if key else key)] = ""
    operator: Literal["Equal", "Exists"] = "Equal"
    value: LabelValue = ""
    effect: Literal["", "NoSchedule", "PreferNoSchedule", "NoExecute"] = ""
    toleration_seconds: int | None = None

    @model_validator(mode="after")
    def _kubernetes_takes_it(self) -> ManifestToleration:
        if not self.key and self.operator != "Exists":
            raise _requirement_fault("operator: Exists where no key is given")
        if self.operator == "Exists" and self.value:
            raise _requirement_fault("no value with Exists")
        return self

    @property
    def toleration(self) -> Toleration:
        """The toleration."""
        return Toleration(self.key, self.operator, self.value, self.effect)


class Metadata(Manifest):
    """Name and labels of an object; the labels of a pod don't bear on where it goes."""

    name: Name | None = None
    namespace: str | None = None
    labels: Labels = {}
    annotations: dict[str, str] = {}
    # Kubernetes' own tools write it as null into what has not been created yet.
    creation_timestamp: None = None


class NamedMetadata(Metadata):
    """Metadata with a name."""

    name: Name


class LiveMetadata(NamedMetadata):
    """Metadata as a cluster shows it. A pod may not have it: its moment of creation orders it among others."""

    uid: str | None = None
    resource_version: str | None = None
    generation: int | None = None
    creation_timestamp: str | None = None  # type: ignore[assignment]
    finalizers: list[str] = []
    owner_references: list[dict[str, Any]] = []
    managed_fields: list[dict[str, Any]] = []


class ContainerResources(Manifest):
    """Requests and limits; what has a limit and no request requests its limit, as the API server writes it."""

    requests: Amounts = {}
    limits: Amounts = {}

    @property
    def effective(self) -> dict[str, int]:
        """What is requested, in billionths."""
        return {**self.limits, **self.requests}


class Port(Manifest):
    """A port of a container; one of the host is not modelled."""

    container_port: int
    name: str | None = None
    protocol: str | None = None


class Container(Manifest):
    """A container: its resources bear on the placement, the rest that is listed does not."""

    name: str
    resources: ContainerResources = ContainerResources()
    restart_policy: Literal["Always"] | None = None
    image: str | None = None
    image_pull_policy: str | None = None
    command: list[str] | None = None
    args: list[str] | None = None
    working_dir: str | None = None
    env: list[dict[str, Any]] | None = None
    env_from: list[dict[str, Any]] | None = None
    ports: list[Port] = []
    security_context: dict[str, Any] | None = None
    liveness_probe: dict[str, Any] | None = None
    readiness_probe: dict[str, Any] | None = None
    startup_probe: dict[str, Any] | None = None
    lifecycle: dict[str, Any] | None = None
    volume_mounts: list[dict[str, Any]] | None = None
    resize_policy: list[dict[str, Any]] | None = None
    termination_message_path: str | None = None
    termination_message_policy: str | None = None


class NodeSelectorTerm(Manifest):
    """Requirements that must all hold."""

    match_expressions: tuple[NodeSelectorRequirement, ...] = Field(default=(), strict=False)


class RequiredNodeAffinity(Manifest):
    """Terms of which one must hold; Karpenter tries the first, then drops it for the next."""

    node_selector_terms: Annotated[tuple[NodeSelectorTerm, ...], Field(min_length=1, strict=False)]


class PreferredTerm(Manifest):
    """A wish: held as a requirement until the pod finds no place, the heaviest first."""

    weight: Annotated[int, Field(ge=1, le=100)]
    preference: NodeSelectorTerm


class NodeAffinity(Manifest):
    """What a pod requires of its node's labels, and what it prefers."""

    required: RequiredNodeAffinity | None = Field(default=None, alias="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: tuple[PreferredTerm, ...] = Field(default=(), alias="preferredDuringSchedulingIgnoredDuringExecution", strict=False)


class Affinity(Manifest):
    """Affinity to nodes; that to pods is not modelled."""

    node_affinity: NodeAffinity | None = None


class Volume(Manifest):
    """A volume that lies on whatever node the pod gets; claims, and disks of a zone, are not modelled."""

    name: str
    empty_dir: dict[str, Any] | None = None
    config_map: dict[str, Any] | None = None
    secret: dict[str, Any] | None = None
    downward_api: dict[str, Any] | None = Field(default=None, alias="downwardAPI")
    projected: dict[str, Any] | None = None
    host_path: dict[str, Any] | None = None


class PodLevelResources(Manifest):
    """Resources of the pod as a whole: they stand for what its containers request together."""

    requests: Amounts = {}
    limits: Amounts = {}

    @model_validator(mode="after")
    def _only_what_is_plain(self) -> PodLevelResources:
        for name in (*self.requests, *self.limits):
            if name not in (CPU, MEMORY) or name not in self.requests:
                raise PydanticCustomError("not_modelled", "{need}", {"need": "a request of cpu or memory for each limit", "given": name})
        return self


class PodSpec(Manifest):
    """A pod's spec as far as it bears on the placement."""

    containers: Annotated[tuple[Container, ...], Field(min_length=1, strict=False)]
    init_containers: tuple[Container, ...] = Field(default=(), strict=False)
    node_selector: Labels = {}
    affinity: Affinity | None = None
    tolerations: tuple[ManifestToleration, ...] = Field(default=(), strict=False)
    overhead: Amounts = {}
    resources: PodLevelResources = PodLevelResources()
    volumes: list[Volume] = []
    restart_policy: str | None = None
    service_account_name: str | None = None
    service_account: str | None = None
    automount_service_account_token: bool | None = None
    termination_grace_period_seconds: int | None = None
    priority_class_name: str | None = None
    priority: int | None = None
    preemption_policy: str | None = None
    scheduler_name: Literal["default-scheduler"] | None = None
    security_context: dict[str, Any] | None = None
    dns_policy: str | None = None
    dns_config: dict[str, Any] | None = None
    enable_service_links: bool | None = None
    image_pull_secrets: list[dict[str, Any]] | None = None
    host_network: Literal[False] | None = None
    host_pid: bool | None = Field(default=None, alias="hostPID")
    host_ipc: bool | None = Field(default=None, alias="hostIPC")

    @model_validator(mode="after")
    def _no_zone_ids(self) -> PodSpec:
        for key, value in self.node_selector.items():
            _check_values(key, "In", (value,))
        return self


class Pod(Manifest):
    """A pod; the name of its metadata is the name of its group."""

    api_version: Literal["v1"] | None = None
    kind: Literal["Pod"] | None = None
    metadata: NamedMetadata
    spec: PodSpec


class DaemonPort(Port):
    """A port of a DaemonSet's container: one of the host too, for no pod that is placed here asks for one."""

    host_port: int | None = None
    host_ip: str | None = Field(default=None, alias="hostIP")


class DaemonContainer(Container):
    """A container of a DaemonSet."""

    ports: list[DaemonPort] = []  # type: ignore[assignment]


class DaemonPodSpec(PodSpec):
    """The spec of a DaemonSet's pods, which may use the host's network."""

    containers: Annotated[tuple[DaemonContainer, ...], Field(min_length=1, strict=False)]
    init_containers: tuple[DaemonContainer, ...] = Field(default=(), strict=False)
    host_network: bool | None = None  # type: ignore[assignment]


class PodTemplate(Manifest):
    """The pods of a DaemonSet."""

    metadata: Metadata = Metadata()
    spec: DaemonPodSpec


class DaemonSetSpec(Manifest):
    """A DaemonSet's spec."""

    template: PodTemplate
    selector: dict[str, Any] | None = None
    update_strategy: dict[str, Any] | None = None
    min_ready_seconds: int | None = None
    revision_history_limit: int | None = None


class DaemonSet(Manifest):
    """A DaemonSet: a pod on each node that it fits to, whose requests come off the node."""

    api_version: Literal["apps/v1"] | None = None
    kind: Literal["DaemonSet"] | None = None
    metadata: LiveMetadata
    spec: DaemonSetSpec
    status: dict[str, Any] | None = None


class NodeClassRef(Manifest):
    """The EC2NodeClass of a NodePool; all of them have the same node settings here."""

    group: str = "karpenter.k8s.aws"
    kind: str = "EC2NodeClass"
    name: LabelValue = "default"


class NodeTemplateSpec(Manifest):
    """What a NodePool's nodes may be."""

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
                raise _requirement_fault(f"labels out of Karpenter's own domains, not {key}")
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
    """A NodePool's spec; disruption bears on what happens to nodes later."""

    template: NodeTemplate
    limits: Annotated[dict[str, Amount], AfterValidator(_check_limits)] = {}
    weight: Annotated[int, Field(ge=1, le=100)] | None = None
    disruption: dict[str, Any] | None = None


class NodePool(Manifest):
    """A NodePool of Karpenter."""

    api_version: Literal["karpenter.sh/v1"] | None = None
    kind: Literal["NodePool"] | None = None
    metadata: LiveMetadata
    spec: NodePoolSpec
    status: dict[str, Any] | None = None

    @property
    def name(self) -> str:
        """Its name."""
        return self.metadata.name
