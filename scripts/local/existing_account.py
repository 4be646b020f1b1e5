"""What an environment expects in its account, made in an emulated one: nobody else creates it there."""

from __future__ import annotations

from penstock.infra.environment import Environment
from penstock.scripts.local.existing_cluster import with_existing_cluster
from penstock.scripts.local.existing_network import with_existing_network
from penstock.scripts.local.existing_principals import create_policy, create_principals
from penstock.scripts.provisioning.aws_access import AwsAccess


def prepared(environment: Environment) -> Environment:
    """Creates the policy of ``permissionsBoundary``, the roles and users of ``eks.admins``, the VPC of ``network.existing``, and the
    cluster of ``eks.existing``.

    Args:
        environment: with the endpoints of an emulated AWS whose account is empty.

    Returns:
        The environment, with the ids of the VPC, its subnets and security groups in the emulated AWS.
    """
    access = AwsAccess(environment)
    if environment.spec.permissions_boundary is not None:
        create_policy(access.client("iam"), environment.spec.permissions_boundary)
    if environment.spec.eks is not None:
        create_principals(access.client("iam"), environment.spec.eks.admins)
    return with_existing_cluster(AwsAccess(with_existing_network(access.client("ec2"), environment)))
