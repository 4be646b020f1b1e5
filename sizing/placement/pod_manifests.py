"""Pods and DaemonSets, as far as they affect placement."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from penstock.sizing.placement.manifest import Labels, LiveMetadata, Manifest, Metadata, NamedMetadata
from penstock.sizing.placement.resources import CPU, MEMORY, Amounts
from penstock.sizing.placement.selection import ManifestToleration, NodeSelectorRequirement, check_values
from penstock.sizing.placement.topology_manifests import PodAffinity, TopologySpreadConstraint


class ContainerResources(Manifest):
    """Requests and limits; a limit without a request is also the request, as in the API server."""

    requests: Amounts = {}
    limits: Amounts = {}

    @property
    def effective(self) -> dict[str, int]:
        """The requests, in billionths."""
        return {**self.limits, **self.requests}


class Port(Manifest):
    """A container port; host ports are not modelled."""

    container_port: int
    name: str | None = None
    protocol: str | None = None


class Container(Manifest):
    """A container: its resources affect placement, the other fields do not."""

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
    stdin: bool | None = None
    stdin_once: bool | None = None
    tty: bool | None = None


class NodeSelectorTerm(Manifest):
    """Requirements that must all hold."""

    match_expressions: tuple[NodeSelectorRequirement, ...] = Field(default=(), strict=False)


class RequiredNodeAffinity(Manifest):
    """Terms of which one must hold; Karpenter tries the first, then replaces it with the next."""

    node_selector_terms: Annotated[tuple[NodeSelectorTerm, ...], Field(min_length=1, strict=False)]


class PreferredTerm(Manifest):
    """A preference: treated as a requirement until the pod cannot be placed, the highest weight first."""

    weight: Annotated[int, Field(ge=1, le=100)]
    preference: NodeSelectorTerm


class NodeAffinity(Manifest):
    """Required and preferred node labels of a pod."""

    required: RequiredNodeAffinity | None = Field(default=None, alias="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: tuple[PreferredTerm, ...] = Field(default=(), alias="preferredDuringSchedulingIgnoredDuringExecution", strict=False)


class Affinity(Manifest):
    """Affinity to nodes and to other pods."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class Volume(Manifest):
    """A volume local to the pod's node; claims and zonal disks are not modelled."""

    name: str
    empty_dir: dict[str, Any] | None = None
    config_map: dict[str, Any] | None = None
    secret: dict[str, Any] | None = None
    downward_api: dict[str, Any] | None = Field(default=None, alias="downwardAPI")
    projected: dict[str, Any] | None = None
    host_path: dict[str, Any] | None = None


class PodLevelResources(Manifest):
    """Pod-level resources: they replace the sum of its containers."""

    requests: Amounts = {}
    limits: Amounts = {}

    @model_validator(mode="after")
    def _only_what_is_plain(self) -> PodLevelResources:
        for name in (*self.requests, *self.limits):
            if name not in (CPU, MEMORY) or name not in self.requests:
                raise PydanticCustomError("not_modelled", "{need}", {"need": "a request of cpu or memory for each limit", "given": name})
        return self


class PodSpec(Manifest):
    """A pod's spec, as far as it affects placement."""

    containers: Annotated[tuple[Container, ...], Field(min_length=1, strict=False)]
    init_containers: tuple[Container, ...] = Field(default=(), strict=False)
    node_selector: Labels = {}
    affinity: Affinity | None = None
    tolerations: tuple[ManifestToleration, ...] = Field(default=(), strict=False)
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = Field(default=(), strict=False)
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
    host_users: bool | None = None
    hostname: str | None = None
    subdomain: str | None = None
    set_hostname_as_fqdn: bool | None = Field(default=None, alias="setHostnameAsFQDN")
    host_aliases: list[dict[str, Any]] | None = None
    active_deadline_seconds: int | None = None
    share_process_namespace: bool | None = None
    readiness_gates: list[dict[str, Any]] | None = None
    host_pid: bool | None = Field(default=None, alias="hostPID")
    host_ipc: bool | None = Field(default=None, alias="hostIPC")

    @model_validator(mode="after")
    def _no_zone_ids(self) -> PodSpec:
        for key, value in self.node_selector.items():
            check_values(key, "In", (value,))
        return self


class Pod(Manifest):
    """A pod; its metadata's name is the name of its group."""

    api_version: Literal["v1"] | None = None
    kind: Literal["Pod"] | None = None
    metadata: NamedMetadata
    spec: PodSpec


class DaemonPort(Port):
    """A port of a DaemonSet's container, including host ports, because no placed pod requires one."""

    host_port: int | None = None
    host_ip: str | None = Field(default=None, alias="hostIP")


class DaemonContainer(Container):
    """A container of a DaemonSet."""

    ports: list[DaemonPort] = []  # type: ignore[assignment]


class DaemonPodSpec(PodSpec):
    """The spec of a DaemonSet's pods, which may use the host network."""

    containers: Annotated[tuple[DaemonContainer, ...], Field(min_length=1, strict=False)]
    init_containers: tuple[DaemonContainer, ...] = Field(default=(), strict=False)
    host_network: bool | None = None  # type: ignore[assignment]

    @model_validator(mode="after")
    def _on_every_node(self) -> DaemonPodSpec:
        if self.affinity and (self.affinity.pod_affinity or self.affinity.pod_anti_affinity):
            raise PydanticCustomError(
                "not_modelled", "{need}", {"need": "no affinity between a DaemonSet's pods and others", "at": "affinity"}
            )
        return self


class PodTemplate(Manifest):
    """The pod template of a DaemonSet."""

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
    """A DaemonSet: one pod on each node that it fits, whose requests are subtracted from the node's allocatable."""

    api_version: Literal["apps/v1"] | None = None
    kind: Literal["DaemonSet"] | None = None
    metadata: LiveMetadata
    spec: DaemonSetSpec
    status: dict[str, Any] | None = None
