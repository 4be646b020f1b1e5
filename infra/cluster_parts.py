"""The parts of an environment that make its Kubernetes cluster: EKS, Karpenter's nodes and what every node and pod of it carries."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, ValidationError, model_validator
from pydantic.alias_generators import to_camel

from sizing.placement.pod_manifests import PodSpec
from sizing.placement.selection import ManifestToleration
from sizing.units import cpu_millicores, duration_ms, memory_mib

# Source: Kubernetes, object names: RFC 1123 labels.
LABEL_NAME = r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"
ZONE_PATTERN = r"^[a-z]{2,4}(-[a-z]+)+-[1-9][0-9]?[a-z]$"
VERSION_PATTERN = r"^1\.[0-9]{1,3}$"


def _millicores(value: object) -> int:
    """A DaemonSet may ask for nothing, where a pod of a job may not."""
    return 0 if value in (0, "0") else cpu_millicores(value)


def _mib(value: object) -> int:
    return 0 if value in (0, "0") else memory_mib(value)


def _version(value: object) -> object:
    """YAML reads 1.30 as the number 1.3."""
    if isinstance(value, float):
        raise ValueError('the version in quotes, as "1.35"')
    return value


def _duration_or_never(value: object) -> object:
    return value if value == "Never" else duration_ms(value)


def _as_duration(ms: int | str) -> str:
    return ms if isinstance(ms, str) else f"{ms}ms"


def _node_selector(labels: dict[str, str]) -> dict[str, str]:
    for label, value in labels.items():
        _as_kubernetes(PodSpec, {"containers": [{"name": "any"}], "nodeSelector": {label: value}}, f"{label}: {value}")
    return labels


def _as_kubernetes(kind: type[BaseModel], manifest: dict[str, Any], given: str) -> None:
    """Refuses what Kubernetes would refuse.

    Raises:
        ValueError: which becomes SPEC-006 with its line.
    """
    try:
        kind.model_validate(manifest)
    except ValidationError as invalid:
        first = invalid.errors(include_url=False)[0]
        need = (first.get("ctx") or {}).get("need") or first["msg"]
        raise ValueError(f"{need}; not {given}") from None


# They are written as they are read, so that an environment's text can be read back.
Millicores = Annotated[int, BeforeValidator(_millicores), PlainSerializer(lambda millicores: f"{millicores}m" if millicores else "0")]
MemoryMib = Annotated[int, BeforeValidator(_mib), PlainSerializer(lambda mib: f"{mib}m" if mib else "0")]
DurationMs = Annotated[int, BeforeValidator(duration_ms), PlainSerializer(_as_duration)]
NodeSelector = Annotated[dict[str, str], AfterValidator(_node_selector)]
DurationMsOrNever = Annotated[int | Literal["Never"], BeforeValidator(_duration_or_never), PlainSerializer(_as_duration)]


class Part(BaseModel):
    """A part of an environment: strict, frozen, camelCase in YAML."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", alias_generator=to_camel, validate_by_name=False)


class Eks(Part):
    """The EKS cluster.

    Args:
        version: of Kubernetes, as ``1.35``.
        extended_support: whether it stays on that version, for a price, when standard support ends.
        karpenter_version: of Karpenter, as ``1.14.1``.
    """

    version: Annotated[str, BeforeValidator(_version), Field(pattern=VERSION_PATTERN)]
    extended_support: bool = False
    karpenter_version: Annotated[str, Field(pattern=r"^[0-9]+\.[0-9]+\.[0-9]+$")] = "1.14.1"


class Requirement(Part):
    """One requirement of a NodePool, as Karpenter writes it.

    Args:
        key: a label, as ``karpenter.k8s.aws/instance-category``.
        operator: as Karpenter's.
        values: none for Exists and DoesNotExist, one for the comparisons.
        min_values: how many different values a node claim must keep open.
    """

    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte"]
    values: list[str] = []
    min_values: Annotated[int, Field(ge=1, le=50)] | None = None


class Taint(Part):
    """A taint of a NodePool's nodes."""

    key: str
    value: str = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]


class Toleration(Part):
    """A toleration of a pod, as Kubernetes writes it; without a key and with Exists it tolerates everything."""

    key: str | None = None
    operator: Literal["Equal", "Exists"] = "Equal"
    value: str | None = None
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None

    @model_validator(mode="after")
    def _kubernetes_takes_it(self) -> Self:
        written = self.model_dump(by_alias=True, exclude_none=True)
        _as_kubernetes(ManifestToleration, written, f"{self.key or 'no key'}, {self.operator}, {self.value or 'no value'}")
        return self


class Budget(Part):
    """How many nodes of a pool may be disrupted at a time.

    Args:
        nodes: a number or a share, as ``10%``.
        reasons: Underutilized, Empty or Drifted; none: all of them.
        schedule: a cron expression in UTC from when it holds.
        duration: for how long it then holds, as ``8h``.
    """

    nodes: Annotated[str, Field(pattern=r"^((100|[0-9]{1,2})%|[0-9]+)$")]
    reasons: list[Literal["Underutilized", "Empty", "Drifted"]] = []
    schedule: str | None = None
    duration: Annotated[str, Field(pattern=r"^([0-9]+(m|h)){1,2}$")] | None = None

    @model_validator(mode="after")
    def _both(self) -> Self:
        if (self.schedule is None) != (self.duration is None):
            raise ValueError("schedule and duration together, or neither")
        return self


class Disruption(Part):
    """When Karpenter may take nodes of a pool away by itself.

    Args:
        consolidation_policy: as Karpenter's.
        consolidate_after: how long a node has to be of little use before, in ms, or ``Never``.
        budgets: how many at a time.
    """

    consolidation_policy: Literal["WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced"] = "WhenEmpty"
    consolidate_after: DurationMsOrNever = 300_000
    budgets: list[Budget] = []


class Pool(Part):
    """A NodePool.

    Args:
        name: of the pool.
        weight: the pool with the greatest is tried first.
        labels: of its nodes.
        taints: of its nodes.
        requirements: on its nodes.
        limits: on all of its nodes together: cpu, memory, nodes, as Kubernetes quantities.
        disruption: when nodes may be taken away.
        expire_after: the age at which a node is replaced, in ms, or ``Never``.
    """

    name: Annotated[str, Field(pattern=LABEL_NAME)]
    weight: Annotated[int, Field(ge=1, le=100)] | None = None
    labels: dict[str, str] = {}
    taints: list[Taint] = []
    requirements: list[Requirement]
    limits: dict[Literal["cpu", "memory", "nodes"], str] = {}
    disruption: Disruption = Disruption()
    expire_after: DurationMsOrNever = 2_592_000_000


def _distinct(pools: list[Pool]) -> list[Pool]:
    names = [pool.name for pool in pools]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"pools with different names; {', '.join(twice)} stands twice")
    return pools


class DaemonSetRequest(Part):
    """What a DaemonSet takes from every node: its pod's requests.

    Args:
        name: of the DaemonSet.
        cpu: requested, in millicores; 0: none.
        memory: requested, in MiB; 0: none.
        node_selector: labels of the nodes that it runs on; none: all.
        tolerations: of its pod; by default it tolerates every taint.
    """

    name: Annotated[str, Field(pattern=LABEL_NAME)]
    cpu: Millicores = 0
    memory: MemoryMib = 0
    node_selector: NodeSelector = {}
    tolerations: list[Toleration] = [Toleration.model_validate({"operator": "Exists"})]


class PodPlace(Part):
    """Where the pods of one kind go: labels that a node must have, and taints that they tolerate."""

    node_selector: NodeSelector = {}
    tolerations: list[Toleration] = []


class PodPlaces(Part):
    """Where drivers and executors go. Selectors of a job's own sparkConf come on top."""

    driver: PodPlace = PodPlace()
    executor: PodPlace = PodPlace()


class Nodes(Part):
    """The nodes that Karpenter may start.

    Args:
        ami_family: the nodes' system.
        max_pods: the kubelet's maxPods; None: as many as the network interfaces have addresses.
        reserved_enis: network interfaces that pods get no address of.
        vm_memory_overhead_percent: share of a type's memory that the hypervisor takes, Karpenter's own setting.
        root_volume: of a node, in MiB.
        measured_capacity: instance type -> memory in MiB that a registered node of it has shown.
        pools: the NodePools.
        daemon_sets: what runs on every node.
        pods: where drivers and executors go.
        spot_ratio: spot price as a share of the on-demand price, assumed where the catalog knows no spot price.
        boot: from a node claim to a node that takes pods, in ms.
    """

    ami_family: Literal["AL2023", "Bottlerocket"] = "AL2023"
    max_pods: Annotated[int, Field(ge=1, le=1000)] | None = None
    reserved_enis: Annotated[int, Field(ge=0, le=15)] = 0
    vm_memory_overhead_percent: Annotated[float, Field(ge=0, lt=1)] = 0.075
    root_volume: Annotated[MemoryMib, Field(ge=1024)] = 51_200
    measured_capacity: dict[str, Annotated[MemoryMib, Field(ge=1)]] = {}
    pools: Annotated[list[Pool], Field(min_length=1), AfterValidator(_distinct)]
    daemon_sets: list[DaemonSetRequest] = []
    pods: PodPlaces = PodPlaces()
    spot_ratio: Annotated[float, Field(gt=0, le=2)] = 0.4
    boot: DurationMs = 60_000


def _zones(zones: list[str]) -> list[str]:
    for zone in zones:
        if not re.fullmatch(ZONE_PATTERN, zone):
            raise ValueError(f'zones as us-east-1a, not "{zone}"')
    if len(set(zones)) != len(zones):
        raise ValueError("each zone once")
    return zones


class Network(Part):
    """The VPC.

    Args:
        zones: availability zones with a private subnet each.
        nat_gateways: 0 to one a zone.
    """

    zones: Annotated[list[str], Field(min_length=1, max_length=6), AfterValidator(_zones)]
    nat_gateways: Annotated[int, Field(ge=0, le=6)] = 1

    @model_validator(mode="after")
    def _no_more_than_zones(self) -> Self:
        if self.nat_gateways > len(self.zones):
            raise ValueError(f"at most one NAT gateway a zone: {len(self.zones)}")
        return self


class Kafka(Part):
    """The Kafka of the environment.

    Args:
        kind: MSK's kinds, or ``external`` for one that is not part of the stacks.
        broker_type: as ``kafka.m7g.large``; None: the cheapest that carries the jobs.
        brokers: how many; None: as few as carry the jobs.
        replication: copies of each partition.
        retention: of the topics, in ms.
        rack_aware: whether consumers read from the copy in their own zone.
        tiered_storage: whether old segments lie in MSK's low-cost tier; read, and without effect on the plan and the bill so far.
    """

    kind: Literal["standard", "express", "serverless", "external"] = "standard"
    broker_type: Annotated[str, Field(pattern=r"^(kafka|express)\.[a-z0-9]+\.[a-z0-9]+$")] | None = None
    brokers: Annotated[int, Field(ge=1, le=90)] | None = None
    replication: Annotated[int, Field(ge=1, le=5)] = 3
    retention: DurationMs = 86_400_000
    rack_aware: bool = False
    tiered_storage: bool = False


class Quotas(Part):
    """Service quotas of the account in this region; what is None is not held against the plan.

    Args:
        on_demand_vcpus: EC2's "Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances", L-1216C47A.
        spot_vcpus: EC2's "All Standard (A, C, D, H, I, M, R, T, Z) Spot Instance Requests", L-34B43A08.
        msk_brokers: MSK's brokers of the account.
    """

    on_demand_vcpus: Annotated[int, Field(ge=0)] | None = None
    spot_vcpus: Annotated[int, Field(ge=0)] | None = None
    msk_brokers: Annotated[int, Field(ge=0)] | None = None
