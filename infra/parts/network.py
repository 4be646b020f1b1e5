"""The network of an environment."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Self

from pydantic import AfterValidator, Field, ValidationInfo, field_validator, model_validator

from penstock.infra.address_plan import (
    MAX_PREFIX,
    MAX_PRIVATE_PREFIX,
    MAX_VPC_PREFIX,
    MAX_ZONES,
    MIN_PREFIX,
    PRIVATE_RANGES,
    AddressPlan,
    address_plan,
    network,
    subnet_faults,
)
from penstock.infra.parts.part import Part, RetentionDays

ZONE_PATTERN = r"^[a-z]{2,4}(-[a-z]+)+-[1-9][0-9]?[a-z]$"
VPC_PATTERN = r"^vpc-[0-9a-f]{8,17}$"
SUBNET_PATTERN = r"^subnet-[0-9a-f]{8,17}$"
# The last part of an endpoint service's name, as in com.amazonaws.eu-central-1.ecr.api.
ENDPOINT_SERVICE_PATTERN = r"^[a-z0-9]+([.-][a-z0-9]+)*$"
DEFAULT_CIDR = "10.0.0.0/16"
# EKS requires subnets in two zones or more. Source: Amazon EKS User Guide, "VPC and subnet requirements".
MIN_ZONES = 2
# Services that the nodes, the system pods and the jobs use, so that their traffic bypasses NAT gateways.
INTERFACE_ENDPOINTS = ("ec2", "ecr.api", "ecr.dkr", "eks", "eks-auth", "kms", "logs", "sqs", "sts")
# Without a route to the Internet: services that nodes and Karpenter require. Source: Amazon EKS User Guide, "private clusters"; Karpenter's
# documentation, "Private Clusters". S3 has its gateway endpoint.
NEEDED_WITHOUT_NAT = ("ec2", "ecr.api", "ecr.dkr", "eks", "eks-auth", "sqs", "ssm", "sts")
# A year, as most audit rules require.
DEFAULT_RETENTION_DAYS = 365

Zone = Annotated[str, Field(pattern=ZONE_PATTERN)]
SubnetId = Annotated[str, Field(pattern=SUBNET_PATTERN)]


def _refuse(faults: Sequence[str]) -> None:
    """Raises all faults of one field.

    Raises:
        ValueError: becomes SPEC-006 with its line.
    """
    if faults:
        raise ValueError("; ".join(dict.fromkeys(faults)))


def _zones(zones: list[str]) -> list[str]:
    for zone in zones:
        if not re.fullmatch(ZONE_PATTERN, zone):
            raise ValueError(f'zones such as us-east-1a, not "{zone}"')
    if len(set(zones)) != len(zones):
        raise ValueError("each zone once")
    return zones


def _cidr(cidr: str) -> str:
    """The addresses of a new VPC: private ones, because public ones would hide their owners on the Internet."""
    addresses = network(cidr)
    if not MIN_PREFIX <= addresses.prefixlen <= MAX_VPC_PREFIX:
        raise ValueError(
            f"a prefix length from /{MIN_PREFIX} to /{MAX_VPC_PREFIX}, for private subnets with room for pods; not /{addresses.prefixlen}"
        )
    if not any(addresses.subnet_of(private) for private in PRIVATE_RANGES):
        raise ValueError(f"private addresses, in {', '.join(map(str, PRIVATE_RANGES))}; not {cidr}")
    return cidr


def _existing_cidr(cidr: str) -> str:
    if not MIN_PREFIX <= network(cidr).prefixlen <= MAX_PREFIX:
        raise ValueError(f"a prefix length from /{MIN_PREFIX} to /{MAX_PREFIX}, as for any VPC; not {cidr}")
    return cidr


def _each_once(names: list[str]) -> list[str]:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"unique values; duplicate: {', '.join(twice)}")
    return names


class ExistingNetwork(Part):
    """An existing VPC, or subnets of one that another account shares through AWS RAM; the stacks use their ids and change nothing of it.

    Args:
        vpc_id: its id.
        cidr: its addresses.
        private_subnet_ids: one per zone, in the order of the zones.
        public_subnet_ids: none, or one per zone.
    """

    vpc_id: Annotated[str, Field(pattern=VPC_PATTERN)]
    cidr: Annotated[str, AfterValidator(_existing_cidr)]
    private_subnet_ids: Annotated[list[SubnetId], AfterValidator(_each_once)]
    public_subnet_ids: Annotated[list[SubnetId], AfterValidator(_each_once)] = []


class Network(Part):
    """The VPC.

    Args:
        zones: availability zones, each with a private subnet.
        nat_gateways: number of NAT gateways, at most one per zone; 0: nothing in the VPC reaches the Internet, and it has no public
            subnets.
        cidr: the VPC's addresses; None: 10.0.0.0/16.
        private_subnets: CIDRs, one per zone; empty: an eighth of the VPC each.
        public_subnets: CIDRs, one per zone, for NAT gateways and load balancers; empty: a sixty-fourth of the VPC each.
        flow_log_retention_days: of the VPC's flow logs; None: a year.
        interface_endpoints: AWS services that are reached without a NAT gateway, by the last part of the endpoint service's name; None:
            `INTERFACE_ENDPOINTS`, and without a NAT gateway `NEEDED_WITHOUT_NAT` too.
        existing: a VPC to use instead of a new one.
    """

    zones: Annotated[list[str], Field(min_length=MIN_ZONES, max_length=MAX_ZONES), AfterValidator(_zones)]
    nat_gateways: Annotated[int, Field(ge=0, le=MAX_ZONES)] = 1
    cidr: Annotated[str, AfterValidator(_cidr)] | None = None
    private_subnets: list[str] = []
    public_subnets: list[str] = []
    flow_log_retention_days: RetentionDays | None = None
    interface_endpoints: Annotated[list[Annotated[str, Field(pattern=ENDPOINT_SERVICE_PATTERN)]], AfterValidator(_each_once)] | None = None
    existing: ExistingNetwork | None = None

    # A validator sees the valid fields above its own, so that each fault has the line of its field.

    @field_validator("nat_gateways")
    @classmethod
    def _one_a_zone(cls, count: int, info: ValidationInfo) -> int:
        zones = info.data.get("zones")
        if zones is not None and count > len(zones):
            raise ValueError(f"at most one NAT gateway per zone: {len(zones)}")
        return count

    @field_validator("private_subnets")
    @classmethod
    def _private(cls, subnets: list[str], info: ValidationInfo) -> list[str]:
        if subnets:
            faults = subnet_faults(subnets, within=_within(info), max_prefix=MAX_PRIVATE_PREFIX)
            _refuse([*_count_faults(subnets, info), *faults])
        return subnets

    @field_validator("public_subnets")
    @classmethod
    def _public(cls, subnets: list[str], info: ValidationInfo) -> list[str]:
        if subnets:
            useless = ["none if natGateways is 0: public subnets would be empty"] if info.data.get("nat_gateways") == 0 else []
            taken = info.data.get("private_subnets", [])
            faults = subnet_faults(subnets, within=_within(info), max_prefix=MAX_PREFIX, taken=taken)
            _refuse([*useless, *_count_faults(subnets, info), *faults])
        return subnets

    @field_validator("interface_endpoints")
    @classmethod
    def _endpoints(cls, services: list[str] | None, info: ValidationInfo) -> list[str] | None:
        if services is not None:
            gateway = ["no s3: it is reached through a gateway endpoint, which is free"] if "s3" in services else []
            missing = [service for service in NEEDED_WITHOUT_NAT if service not in services] if info.data.get("nat_gateways") == 0 else []
            closed = [f"also {', '.join(missing)}: without a NAT gateway, nodes cannot start without them"] if missing else []
            _refuse([*gateway, *closed])
        return services

    @field_validator("existing")
    @classmethod
    def _existing(cls, existing: ExistingNetwork | None, info: ValidationInfo) -> ExistingNetwork | None:
        if existing is not None:
            own = ("cidr", "private_subnets", "public_subnets", "flow_log_retention_days", "interface_endpoints")
            given = [_camel(name) for name in own if info.data.get(name)]
            beside = [f"no settings of a new VPC together with existing: {', '.join(given)}"] if given else []
            public = existing.public_subnet_ids
            faults = [*beside, *_count_faults(existing.private_subnet_ids, info), *(_count_faults(public, info) if public else [])]
            _refuse([*faults, *_in_both(existing)])
        return existing

    @model_validator(mode="after")
    def _by_hand_or_computed(self) -> Self:
        if self.nat_gateways and bool(self.private_subnets) != bool(self.public_subnets):
            raise ValueError("both privateSubnets and publicSubnets, or neither: computed ones could overlap given ones")
        return self

    @property
    def addresses(self) -> str:
        """The CIDR of the VPC, new or existing."""
        return self.existing.cidr if self.existing else self.cidr or DEFAULT_CIDR

    @property
    def subnets(self) -> AddressPlan:
        """The CIDRs of the subnets of a new VPC; public ones only with NAT gateways."""
        computed = address_plan(self.addresses, len(self.zones))
        public = tuple(self.public_subnets) or computed.public
        return AddressPlan(tuple(self.private_subnets) or computed.private, public if self.nat_gateways else ())

    @property
    def endpoint_services(self) -> tuple[str, ...]:
        """The AWS services with an interface endpoint in a new VPC, sorted."""
        if self.interface_endpoints is not None:
            return tuple(sorted(self.interface_endpoints))
        return tuple(sorted({*INTERFACE_ENDPOINTS, *(() if self.nat_gateways else NEEDED_WITHOUT_NAT)}))


def _within(info: ValidationInfo) -> str | None:
    """The VPC's CIDR; None if it is invalid, which is already reported."""
    return (info.data["cidr"] or DEFAULT_CIDR) if "cidr" in info.data else None


def _count_faults(subnets: Sequence[str], info: ValidationInfo) -> list[str]:
    zones = info.data.get("zones")
    if zones is None or len(subnets) == len(zones):
        return []
    return [f"one subnet per zone, in the order of the zones: {len(zones)}, not {len(subnets)}"]


def _in_both(existing: ExistingNetwork) -> list[str]:
    both = sorted(set(existing.private_subnet_ids) & set(existing.public_subnet_ids))
    return [f"disjoint private and public subnets; in both: {', '.join(both)}"] if both else []


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)
