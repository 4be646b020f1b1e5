"""Lookup of resources in other services that a request names (networks, roles, keys), through their APIs.

They are in this process, where moto responds without a connection, or in a second emulator, behind the URLs in `VARIABLE`. What a service
creates in another one, such as EKS's security group, is created there.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import unquote

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError
from moto.core.models import botocore_stubber

from penstock.scripts.emulation.checked_service import Place

# JSON: service -> URL, of those that are not in this process.
VARIABLE = "PENSTOCK_EMULATED_NEIGHBOURS"
_CONFIG = Config(connect_timeout=5, read_timeout=30, retries={"total_max_attempts": 1})


@dataclass(frozen=True)
class Subnet:
    """An existing subnet.

    Args:
        id: its id.
        vpc: its VPC's id.
        zone: its availability zone.
    """

    id: str
    vpc: str
    zone: str


def join() -> None:
    """Make this process's own services reachable without a connection; called once, before the first request.

    Requests to the URLs of a second emulator pass, because they are not AWS's.
    """
    botocore_stubber.enabled = True


def subnets(place: Place, ids: Sequence[str]) -> dict[str, Subnet]:
    """Return the existing subnets, by id."""
    return {id: subnet for id in ids if (subnet := _subnet(place, id))}


def _subnet(place: Place, id: str) -> Subnet | None:
    subnet = _one(lambda: _client("ec2", place).describe_subnets(SubnetIds=[id])["Subnets"])
    return Subnet(id, subnet["VpcId"], subnet["AvailabilityZone"]) if subnet else None


def vpc_cidr(place: Place, id: str) -> str | None:
    """Return a VPC's primary CIDR; None if the VPC does not exist."""
    vpc = _one(lambda: _client("ec2", place).describe_vpcs(VpcIds=[id])["Vpcs"])
    return vpc["CidrBlock"] if vpc else None


def security_group_vpc(place: Place, id: str) -> str | None:
    """Return the VPC of a security group; None if the group does not exist."""
    group = _one(lambda: _client("ec2", place).describe_security_groups(GroupIds=[id])["SecurityGroups"])
    return group["VpcId"] if group else None


def make_security_group(place: Place, *, vpc: str, name: str, description: str, tags: Mapping[str, str]) -> str:
    """Create a security group whose members may reach each other and all destinations, as EKS does.

    Returns:
        Its id.
    """
    ec2 = _client("ec2", place)
    tagged = [{"Key": key, "Value": value} for key, value in tags.items()]
    specification = [{"ResourceType": "security-group", "Tags": tagged}]
    group: str = ec2.create_security_group(GroupName=name, Description=description, VpcId=vpc, TagSpecifications=specification)["GroupId"]
    ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=[{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group}]}])
    return group


def drop_security_group(place: Place, id: str) -> None:
    """Delete a security group, if it still exists."""
    _one(lambda: [_client("ec2", place).delete_security_group(GroupId=id)])


def instance_architecture(place: Place, kind: str) -> str | None:
    """Return ``x86_64`` or ``arm64``; None for an unknown instance type."""
    instance_type = _one(lambda: _client("ec2", place).describe_instance_types(InstanceTypes=[kind])["InstanceTypes"])
    if instance_type is None:
        return None
    known = instance_type["ProcessorInfo"]["SupportedArchitectures"]
    return "arm64" if "arm64" in known else "x86_64"


def launch_template(place: Place, asked: Mapping[str, str]) -> dict[str, str] | None:
    """Return a launch template's id and name.

    Args:
        place: its account and region.
        asked: its ``id`` or its ``name``.

    Returns:
        Both; None if the template does not exist.
    """
    named = {"LaunchTemplateIds": [asked["id"]]} if "id" in asked else {"LaunchTemplateNames": [asked.get("name", "")]}
    template = _one(lambda: _client("ec2", place).describe_launch_templates(**named)["LaunchTemplates"])
    return {"id": template["LaunchTemplateId"], "name": template["LaunchTemplateName"]} if template else None


def trust_policy(place: Place, role_arn: str) -> dict[str, Any] | None:
    """Return a role's trust policy; None if the role does not exist."""
    role = _one(lambda: [_client("iam", place).get_role(RoleName=role_arn.rpartition("/")[2])["Role"]])
    if role is None or role["Arn"] != role_arn:
        return None
    policy = role["AssumeRolePolicyDocument"]
    trust: dict[str, Any] = json.loads(unquote(policy)) if isinstance(policy, str) else policy
    return trust


def user_exists(place: Place, user_arn: str) -> bool:
    """Whether an IAM user exists."""
    user = _one(lambda: [_client("iam", place).get_user(UserName=user_arn.rpartition("/")[2])["User"]])
    return user is not None and user["Arn"] == user_arn


def key_exists(place: Place, key_arn: str) -> bool:
    """Whether a KMS key exists and is enabled."""
    key = _one(lambda: [_client("kms", place).describe_key(KeyId=key_arn)["KeyMetadata"]])
    return bool(key and key["Enabled"])


def log_group_exists(place: Place, name: str) -> bool:
    """Whether a CloudWatch log group exists."""
    groups = _client("logs", place).describe_log_groups(logGroupNamePrefix=name)["logGroups"]
    return any(group["logGroupName"] == name for group in groups)


def bucket_exists(place: Place, name: str) -> bool:
    """Whether a bucket exists."""
    return _one(lambda: [_client("s3", place).head_bucket(Bucket=name)]) is not None


def _one(ask: Callable[[], Sequence[Any]]) -> Any:
    """Return the only result of a request; None if AWS reports that it does not exist."""
    try:
        results = ask()
    except ClientError:
        return None
    return results[0] if results else None


@cache
def _client(service: str, place: Place) -> Any:
    # boto3's types expect the service's name as a literal.
    make: Any = boto3.client
    return make(
        service,
        region_name=place.region,
        endpoint_url=json.loads(os.environ.get(VARIABLE) or "{}").get(service),
        # LocalStack's account is the one of a key of 12 digits.
        aws_access_key_id=place.account,
        aws_secret_access_key="emulated",
        config=_CONFIG,
    )
