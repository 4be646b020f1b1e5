"""An existing VPC and its subnets, held against the environment; read-only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from botocore.exceptions import ClientError

from penstock.infra.environment import Environment
from penstock.infra.parts.network import ExistingNetwork
from penstock.scripts.provisioning.aws_access import AwsAccess, code_of, translated
from penstock.scripts.provisioning.errors import NetworkDiffers
from penstock.sizing.errors import raise_all

# Source: Amazon EC2 API reference, "Error codes for the Amazon EC2 API".
_ABSENT = {"InvalidVpcID.NotFound", "InvalidSubnetID.NotFound"}


def check(aws: AwsAccess) -> str | None:
    """Check that the VPC has the addresses that the environment says, and each subnet is in it and in its zone.

    Subnets that another account shares are described as the account's own are.

    Args:
        aws: AWS of the environment.

    Returns:
        The id of the VPC; None if the environment creates its own.

    Raises:
        NetworkDiffers: DEP-051; several are raised as `Faults`.
        PenstockError: TOOL-030, DEP-001, RUN-020 or RUN-021.
    """
    network = aws.environment.spec.network
    if network is None or network.existing is None:
        return None
    with translated(f"EC2 in {aws.environment.spec.region}"):
        raise_all(list(_faults(aws.client("ec2"), aws.environment, network.existing, network.zones)))
    return network.existing.vpc_id


def _faults(ec2: Any, environment: Environment, existing: ExistingNetwork, zones: list[str]) -> Iterator[NetworkDiffers]:
    vpc = _described(lambda: ec2.describe_vpcs(VpcIds=[existing.vpc_id])["Vpcs"])
    if vpc is None:
        need = f"a VPC of {environment.spec.region} that this account may use"
        fix = "correct the id or spec.region, or have its owner share its subnets"
        yield _at(environment, NetworkDiffers(given=f"{existing.vpc_id} does not exist", need=need, fix=fix), "vpcId")
        return
    ranges = [one["CidrBlock"] for one in vpc.get("CidrBlockAssociationSet", [])] or [vpc["CidrBlock"]]
    if existing.cidr not in ranges:
        given = f"{existing.vpc_id} has the addresses {', '.join(ranges)}, not {existing.cidr}"
        yield _at(environment, NetworkDiffers(given=given, need="one of its address ranges", fix=f"cidr: {ranges[0]}"), "cidr")
    for name, ids in (("privateSubnetIds", existing.private_subnet_ids), ("publicSubnetIds", existing.public_subnet_ids)):
        for index, (subnet_id, zone) in enumerate(zip(ids, zones, strict=False)):
            wrong = _subnet_fault(ec2, subnet_id, existing.vpc_id, zone)
            if wrong is not None:
                need = f"a subnet of {existing.vpc_id} in {zone}: one per zone, in the order of spec.network.zones"
                fault = NetworkDiffers(given=wrong, need=need, fix=f"correct spec.network.existing.{name}")
                yield _at(environment, fault, name, index)


def _subnet_fault(ec2: Any, subnet_id: str, vpc_id: str, zone: str) -> str | None:
    subnet = _described(lambda: ec2.describe_subnets(SubnetIds=[subnet_id])["Subnets"])
    if subnet is None:
        return f"{subnet_id} does not exist"
    if subnet["VpcId"] != vpc_id:
        return f"{subnet_id} is in {subnet['VpcId']}, not in {vpc_id}"
    return f"{subnet_id} is in {subnet['AvailabilityZone']}, not in {zone}" if subnet["AvailabilityZone"] != zone else None


def _described(ask: Any) -> Mapping[str, Any] | None:
    """The one thing that is described; None if it does not exist."""
    try:
        (described,) = ask()
    except ClientError as error:
        if code_of(error) in _ABSENT:
            return None
        raise
    found: Mapping[str, Any] = described
    return found


def _at(environment: Environment, fault: NetworkDiffers, *field: str | int) -> NetworkDiffers:
    return environment.locate(fault, "spec", "network", "existing", *field)
