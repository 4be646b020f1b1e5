"""The nodes that Karpenter may start, and the DaemonSets that run on every node."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, Field, ValidationError, model_validator

from penstock.infra.parts.part import LABEL_NAME, DurationMs, DurationMsOrNever, MemoryMib, Millicores, Part
from penstock.sizing.cost.usage import GP3_FREE_IOPS, GP3_FREE_MIBPS
from penstock.sizing.placement.pod_manifests import PodSpec
from penstock.sizing.placement.selection import ManifestToleration
from penstock.sizing.plan.root_volume import IOPS_PER_GIB, IOPS_PER_MIBPS, MOST_IOPS, MOST_MIBPS

LATEST = "latest"
# Name of the EC2NodeClass of a cluster that the stacks create.
NODE_CLASS = "default"
# Release names of the families. Source: the tags of awslabs/amazon-eks-ami and of bottlerocket-os/bottlerocket.
AMI_VERSIONS = {"AL2023": (r"v20[0-9]{6}", "v20260903"), "Bottlerocket": (r"v[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}", "v1.55.0")}
# Source: Karpenter 1.14.1's CRD of the EC2NodeClass: gp3 volumes of up to 16,384 GiB.
MAX_VOLUME_MIB = 16 * 1024 * 1024


def _node_selector(labels: dict[str, str]) -> dict[str, str]:
    for label, value in labels.items():
        _as_kubernetes(PodSpec, {"containers": [{"name": "any"}], "nodeSelector": {label: value}}, f"{label}: {value}")
    return labels


def _as_kubernetes(kind: type[BaseModel], manifest: dict[str, Any], given: str) -> None:
    """Rejects values that Kubernetes would reject.

    Raises:
        ValueError: becomes SPEC-006 with its line.
    """
    try:
        kind.model_validate(manifest)
    except ValidationError as invalid:
        first = invalid.errors(include_url=False)[0]
        need = (first.get("ctx") or {}).get("need") or first["msg"]
        raise ValueError(f"{need}; not {given}") from None


NodeSelector = Annotated[dict[str, str], AfterValidator(_node_selector)]


class Requirement(Part):
    """One requirement of a NodePool, in Karpenter's form.

    Args:
        key: a label, such as ``karpenter.k8s.aws/instance-category``.
        operator: one of Karpenter's.
        values: none for Exists and DoesNotExist, one for the comparisons.
        min_values: minimum number of distinct values that a node claim must allow.
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
    """A toleration of a pod, in Kubernetes' form; with Exists and no key, it tolerates everything."""

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
    """The number of nodes of a pool that may be disrupted at a time.

    Args:
        nodes: a number or a share, such as ``10%``.
        reasons: Underutilized, Empty or Drifted; empty: all of them.
        schedule: a cron expression in UTC for when it becomes active.
        duration: how long it then stays active, such as ``8h``.
    """

    nodes: Annotated[str, Field(pattern=r"^((100|[0-9]{1,2})%|[0-9]+)$")]
    reasons: list[Literal["Underutilized", "Empty", "Drifted"]] = []
    schedule: str | None = None
    duration: Annotated[str, Field(pattern=r"^([0-9]+(m|h)){1,2}$")] | None = None

    @model_validator(mode="after")
    def _both(self) -> Self:
        if (self.schedule is None) != (self.duration is None):
            raise ValueError("both schedule and duration, or neither")
        return self


class Disruption(Part):
    """When Karpenter may disrupt nodes of a pool.

    Args:
        consolidation_policy: one of Karpenter's.
        consolidate_after: time in ms for which a node must be a candidate first, or ``Never``.
        budgets: limits of simultaneous disruptions.
    """

    consolidation_policy: Literal["WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced"] = "WhenEmpty"
    consolidate_after: DurationMsOrNever = 300_000
    budgets: list[Budget] = []


class Pool(Part):
    """A NodePool.

    Args:
        name: of the pool.
        weight: the pool with the greatest weight is tried first.
        labels: of its nodes.
        taints: of its nodes.
        requirements: on its nodes.
        limits: on the sum of its nodes: cpu, memory, nodes, as Kubernetes quantities. If empty, the stacks derive them from the plans of
            the
            environment's jobs.
        disruption: when nodes may be disrupted.
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
        raise ValueError(f"unique pool names; duplicate: {', '.join(twice)}")
    return pools


class DaemonSetRequest(Part):
    """The requests of a DaemonSet's pod, which every node subtracts from its allocatable.

    Args:
        name: of the DaemonSet.
        cpu: requested, in millicores; 0: none.
        memory: requested, in MiB; 0: none.
        node_selector: labels of the nodes that it runs on; empty: all nodes.
        tolerations: of its pod; by default it tolerates every taint.
    """

    name: Annotated[str, Field(pattern=LABEL_NAME)]
    cpu: Millicores = 0
    memory: MemoryMib = 0
    node_selector: NodeSelector = {}
    tolerations: list[Toleration] = [Toleration.model_validate({"operator": "Exists"})]


class PodPlace(Part):
    """Placement of the pods of one kind: labels that a node must have, and taints that they tolerate."""

    node_selector: NodeSelector = {}
    tolerations: list[Toleration] = []


class PodPlaces(Part):
    """Placement of drivers and executors. Selectors in a job's own sparkConf are added."""

    driver: PodPlace = PodPlace()
    executor: PodPlace = PodPlace()


def _whole_gib(mib: int) -> int:
    if mib % 1024:
        raise ValueError(f"whole GiB, as required by EBS: {mib // 1024}Gi or {mib // 1024 + 1}Gi")
    return mib


class RootVolumePerformance(Part):
    """Performance of the nodes' gp3 root volumes.

    Args:
        iops: provisioned IOPS.
        throughput: provisioned throughput in MiB/s.
    """

    iops: Annotated[int, Field(ge=GP3_FREE_IOPS, le=MOST_IOPS)]
    throughput: Annotated[int, Field(ge=GP3_FREE_MIBPS, le=MOST_MIBPS)]

    @model_validator(mode="after")
    def _as_ebs_provisions(self) -> Self:
        if self.throughput * IOPS_PER_MIBPS > self.iops:
            raise ValueError(f"at least {IOPS_PER_MIBPS} IOPS per MiB/s: {self.throughput * IOPS_PER_MIBPS} for {self.throughput} MiB/s")
        return self


class Nodes(Part):
    """The nodes that Karpenter may start.

    Args:
        ami_family: the AMI family of the nodes.
        ami_version: its release, such as ``v20260903`` of AL2023 or ``v1.55.0`` of Bottlerocket; ``latest`` follows each release, and
            nodes
            that run an older one are replaced as the pools' budgets allow.
        max_pods: the kubelet's maxPods; None: as many as the network interfaces have addresses.
        reserved_enis: network interfaces whose addresses are not assigned to pods.
        vm_memory_overhead_percent: share of a type's memory that the hypervisor uses, Karpenter's own setting.
        root_volume: of a node, in MiB, whole GiB.
        root_volume_performance: of that volume; None: as the plans of the environment's jobs require.
        measured_capacity: instance type -> memory in MiB that a registered node of it has reported.
        pools: the NodePools.
        daemon_sets: run on every node.
        pods: placement of drivers and executors.
        spot_ratio: spot price as a share of the on-demand price, assumed if the catalog has no spot price.
        boot: time from a node claim to a node that accepts pods, in ms.
        limit_headroom: share of the plans' pod requests that a pool's limits, if derived from the plans, add on top.
        spot_service_role: whether the stacks create EC2 Spot's service-linked role; false if the account has it, which has at most one.
    """

    ami_family: Literal["AL2023", "Bottlerocket"] = "AL2023"
    ami_version: str = LATEST
    max_pods: Annotated[int, Field(ge=1, le=1000)] | None = None
    reserved_enis: Annotated[int, Field(ge=0, le=15)] = 0
    vm_memory_overhead_percent: Annotated[float, Field(ge=0, lt=1)] = 0.075
    root_volume: Annotated[MemoryMib, Field(ge=1024, le=MAX_VOLUME_MIB), AfterValidator(_whole_gib)] = 51_200
    root_volume_performance: RootVolumePerformance | None = None
    measured_capacity: dict[str, Annotated[MemoryMib, Field(ge=1)]] = {}
    pools: Annotated[list[Pool], Field(min_length=1), AfterValidator(_distinct)]
    daemon_sets: list[DaemonSetRequest] = []
    pods: PodPlaces = PodPlaces()
    spot_ratio: Annotated[float, Field(gt=0, le=2)] = 0.4
    boot: DurationMs = 60_000
    limit_headroom: Annotated[float, Field(ge=0, le=10)] = 0.5
    spot_service_role: Literal["create", "existing"] = "create"

    @model_validator(mode="after")
    def _iops_of_the_size(self) -> Self:
        most = max(GP3_FREE_IOPS, IOPS_PER_GIB * self.root_volume // 1024)
        if self.root_volume_performance is not None and self.root_volume_performance.iops > most:
            raise ValueError(f"rootVolumePerformance.iops of at most {most}, {IOPS_PER_GIB} per GiB of rootVolume")
        return self

    @model_validator(mode="after")
    def _release_of_the_family(self) -> Self:
        pattern, example = AMI_VERSIONS[self.ami_family]
        if self.ami_version != LATEST and not re.fullmatch(pattern, self.ami_version):
            raise ValueError(f"amiVersion {LATEST}, or a release of {self.ami_family} such as {example}; not {self.ami_version}")
        return self
