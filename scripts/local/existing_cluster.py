"""The EKS cluster that an environment expects in its account, in an emulated one: nobody else creates it there."""

from __future__ import annotations

import json
from typing import Any

from penstock.infra.environment import Environment
from penstock.scripts.provisioning.aws_access import AwsAccess
from penstock.scripts.provisioning.existing_cluster import AGENT

_CLUSTER_ROLE = "owners-of-the-cluster"


def with_existing_cluster(access: AwsAccess) -> Environment:
    """Creates the cluster that an environment names as existing, with what jobs need of it, and the role of its nodes.

    Args:
        access: the emulated AWS of the environment, which has its VPC.

    Returns:
        The environment with the ids of security groups, which an emulator chooses. Unchanged if it has a cluster of its own.
    """
    environment, existing = access.environment, access.environment.existing_cluster
    network, eks = environment.spec.network, environment.spec.eks
    if existing is None or eks is None or network is None or network.existing is None:
        return environment
    client = access.client("eks")
    client.create_cluster(
        name=existing.name,
        version=eks.version,
        roleArn=_role(access, _CLUSTER_ROLE, "eks.amazonaws.com"),
        resourcesVpcConfig={"subnetIds": network.existing.private_subnet_ids},
        accessConfig={"authenticationMode": "API_AND_CONFIG_MAP"},
    )
    client.create_addon(clusterName=existing.name, addonName=AGENT)
    if existing.node_role is not None:
        arn = _role(access, existing.node_role, "ec2.amazonaws.com")
        client.create_access_entry(clusterName=existing.name, principalArn=arn, type="EC2_LINUX")
    ec2, vpc = access.client("ec2"), network.existing.vpc_id
    groups = [
        ec2.create_security_group(GroupName=f"nodes-{number}", Description="Nodes of the cluster", VpcId=vpc)["GroupId"]
        for number, _ in enumerate(existing.security_group_ids, start=1)
    ]
    made = existing.model_copy(update={"security_group_ids": groups})
    return environment.with_spec(eks=eks.model_copy(update={"existing": made}))


def _role(access: AwsAccess, name: str, service: str) -> str:
    trust: dict[str, Any] = {"Effect": "Allow", "Principal": {"Service": service}, "Action": "sts:AssumeRole"}
    document = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
    arn: str = access.client("iam").create_role(RoleName=name, AssumeRolePolicyDocument=document)["Role"]["Arn"]
    return arn
