"""Pods and DaemonSets, as far as they bear on the placement."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from penstock.sizing.placement.manifest import Labels, LiveMetadata, Manifest, Metadata, NamedMetadata
from penstock.sizing.placement.resources import CPU, MEMORY, Amounts
from penstock.sizing.placement.selection import ManifestToleration, NodeSelectorRequirement, check_values


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
            check_values(key, "In", (value,))
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
