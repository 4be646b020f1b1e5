"""The VPC that an environment expects in its account, in an emulated one: nobody else creates it there."""

from __future__ import annotations

import ipaddress
from typing import Any

from penstock.infra.environment import Environment


def with_existing_network(ec2: Any, environment: Environment) -> Environment:
    """Creates the VPC and the subnets that an environment names as existing.

    Args:
        ec2: boto3's client of the emulated EC2.
        environment: the environment.

    Returns:
        The environment with their ids: an emulator gives ids of its own. Unchanged if it has a VPC of its own.
    """
    network = environment.spec.network
    if network is None or network.existing is None:
        return environment
    existing = network.existing
    vpc = ec2.create_vpc(CidrBlock=existing.cidr)["Vpc"]["VpcId"]
    wanted = [*zip(existing.private_subnet_ids, network.zones, strict=True), *zip(existing.public_subnet_ids, network.zones, strict=False)]
    parts = ipaddress.IPv4Network(existing.cidr).subnets(prefixlen_diff=(len(wanted) - 1).bit_length())
    # The ids of the environment's file -> those of the emulator.
    ids = {
        asked: ec2.create_subnet(VpcId=vpc, CidrBlock=str(part), AvailabilityZone=zone)["Subnet"]["SubnetId"]
        for (asked, zone), part in zip(wanted, parts, strict=False)
    }
    changes = {
        "vpc_id": vpc,
        "private_subnet_ids": [ids[asked] for asked in existing.private_subnet_ids],
        "public_subnet_ids": [ids[asked] for asked in existing.public_subnet_ids],
    }
    made = existing.model_copy(update=changes)
    return environment.with_spec(network=network.model_copy(update={"existing": made}))
