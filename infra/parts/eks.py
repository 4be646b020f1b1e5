"""The EKS cluster of an environment."""

from __future__ import annotations

import re
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from penstock.infra.parts.access_ranges import refuse_most_of_the_internet
from penstock.infra.parts.existing_cluster import ExistingCluster
from penstock.infra.parts.part import Part, RetentionDays

VERSION_PATTERN = r"^1\.[0-9]{1,3}$"
# An access entry is for a role or a user. Source: Amazon EKS API reference, CreateAccessEntry: not for sessions of a role or the root user.
PRINCIPAL_PATTERN = r"^arn:aws(-[a-z]+)*:iam::[0-9]{12}:(role|user)/[A-Za-z0-9+=,.@_/-]+$"
INSTANCE_TYPE_PATTERN = r"^[a-z][a-z0-9-]*\.[a-z0-9-]+$"
# Source: Amazon EKS User Guide, "View Amazon EKS service quotas": public endpoint access CIDR ranges per cluster.
MAX_PUBLIC_CIDRS = 40
# EKS rejects them: they are not routed on the Internet. Source: RFC 1918, 6598, 1122, 3927; RFC 4193 and 4291 for IPv6.
NEVER_PUBLIC = tuple(
    map(
        ip_network,
        ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "fc00::/7", "fe80::/10"),
    )
)
# A year, as most audit rules require.
DEFAULT_RETENTION_DAYS: RetentionDays = 365

# Fields that an existing cluster's owners decide.
_OF_A_NEW_CLUSTER = ("public_access_cidrs", "private_access_cidrs", "log_retention_days", "system_nodes", "add_on_versions")

AddOn = Literal["vpc-cni", "coredns", "kube-proxy", "eks-pod-identity-agent", "aws-ebs-csi-driver"]


def _version(value: object) -> object:
    """YAML reads 1.30 as the number 1.3."""
    if isinstance(value, float):
        raise ValueError('the version in quotes, such as "1.35"')
    return value


def _range(cidr: str) -> IPv4Network | IPv6Network:
    try:
        return ip_network(cidr)
    except ValueError:
        pass
    try:
        meant = ip_network(cidr, strict=False)
    except ValueError:
        raise ValueError(f"a CIDR block such as 203.0.113.0/24, not {cidr}") from None
    raise ValueError(f"the network address of the block: {meant}, not {cidr}")


def _named(cidr: str) -> str:
    """A range that has a single owner."""
    network = _range(cidr)
    refuse_most_of_the_internet(network, "the API server")
    return str(network)


def _public(cidr: str) -> str:
    network = _range(_named(cidr))
    if any(network.version == never.version and network.overlaps(never) for never in NEVER_PUBLIC):
        raise ValueError(f"public addresses, not the private ones of {cidr}; access from within the network is always allowed")
    return str(network)


def _each_once(values: list[str]) -> list[str]:
    twice = sorted({value for value in values if values.count(value) > 1})
    if twice:
        raise ValueError(f"unique values; duplicate: {', '.join(twice)}")
    return values


def _one_architecture(types: list[str]) -> list[str]:
    arms = {arm(name) for name in types}
    if len(arms) > 1:
        raise ValueError("instance types of a single architecture: a node group has one AMI, for x86 or for Graviton")
    return _each_once(types)


def _administrators(arns: list[str]) -> list[str]:
    """Distinct, with distinct names in the stack."""
    first: dict[str, str] = {}
    for arn in _each_once(arns):
        before = first.setdefault(principal_id(arn), arn)
        if before != arn:
            raise ValueError(f"names that differ in letters or digits: {before} and {arn} would get the same address in the stack")
    return arns


def principal_id(arn: str) -> str:
    """The name of an IAM role or user in a stack: its account and name, in letters, digits and hyphens.

    Args:
        arn: of the role or user.
    """
    return re.sub("[^A-Za-z0-9]+", "-", arn.partition("iam::")[2])


def arm(instance_type: str) -> bool:
    """Whether an instance type has a Graviton processor: its family has a g after the generation, as in m7g or c6gn.

    Args:
        instance_type: such as ``m7g.large``.
    """
    family = instance_type.partition(".")[0]
    return family == "a1" or re.match(r"^[a-z]+[0-9]+g", family) is not None


class SystemNodes(Part):
    """The managed node group of the system pods and of Karpenter, always on demand.

    Args:
        instance_types: allowed types, of one architecture.
        min: minimum number of nodes; with a single node, Karpenter is down while that is replaced.
        max: maximum number of nodes.
    """

    instance_types: Annotated[
        list[Annotated[str, Field(pattern=INSTANCE_TYPE_PATTERN)]], Field(min_length=1, max_length=20), AfterValidator(_one_architecture)
    ] = ["m7i.large", "m6i.large"]
    min: Annotated[int, Field(ge=1, le=20)] = 2
    max: Annotated[int, Field(ge=1, le=20)] = 3

    @model_validator(mode="after")
    def _min_below_max(self) -> Self:
        if self.min > self.max:
            raise ValueError(f"min of at most max, {self.max}; min is {self.min}")
        return self


class Eks(Part):
    """The EKS cluster.

    Args:
        version: of Kubernetes, such as ``1.35``.
        extended_support: whether it stays on that version, at extra cost, when standard support ends; otherwise EKS upgrades it then.
        karpenter_version: of Karpenter, such as ``1.14.1``.
        public_access_cidrs: ranges that may reach the API server over the Internet; empty: only the network itself may.
        private_access_cidrs: further ranges, behind a VPN or a peering; the VPC itself always has access.
        admins: ARNs of the IAM roles and users with administrator access, among them the one that deploys.
        log_retention_days: of the control plane's logs.
        system_nodes: the nodes of the system pods.
        add_on_versions: pinned versions of add-ons, such as ``{coredns: v1.12.4-eksbuild.1}``; others have EKS's default.
        spark_operator: whether jobs are deployed as a SparkApplication, for an existing Apache Spark Kubernetes Operator, instead of a
            StatefulSet of the driver.
        existing: a cluster to use instead of a new one.
    """

    version: Annotated[str, BeforeValidator(_version), Field(pattern=VERSION_PATTERN)]
    extended_support: bool = False
    karpenter_version: Annotated[str, Field(pattern=r"^[0-9]+\.[0-9]+\.[0-9]+$")] = "1.14.1"
    public_access_cidrs: Annotated[
        list[Annotated[str, AfterValidator(_public)]], Field(max_length=MAX_PUBLIC_CIDRS), AfterValidator(_each_once)
    ] = []
    private_access_cidrs: Annotated[list[Annotated[str, AfterValidator(_named)]], AfterValidator(_each_once)] = []
    admins: Annotated[list[Annotated[str, Field(pattern=PRINCIPAL_PATTERN)]], AfterValidator(_administrators)] = []
    log_retention_days: RetentionDays = DEFAULT_RETENTION_DAYS
    system_nodes: SystemNodes = SystemNodes()
    add_on_versions: dict[AddOn, Annotated[str, Field(pattern=r"^v[0-9]+\.[0-9]+\.[0-9]+-eksbuild\.[0-9]+$")]] = {}
    spark_operator: bool = False
    existing: ExistingCluster | None = None

    @model_validator(mode="after")
    def _nothing_of_a_new_cluster(self) -> Self:
        if self.existing is None:
            return self
        own = [*_OF_A_NEW_CLUSTER, *(["karpenter_version"] if self.existing.karpenter == "existing" else [])]
        # Not by the fields that are set: an environment that is written and read again has them all.
        fields = type(self).model_fields
        given = [fields[name].alias or name for name in own if getattr(self, name) != fields[name].default]
        if given:
            raise ValueError(f"no settings of a new cluster together with existing: {', '.join(given)}")
        return self
