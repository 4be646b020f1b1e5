"""The IAM policy, roles and users that an environment expects in its account, in an emulated one: nobody else creates them there."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any


def create_principals(iam: Any, arns: Iterable[str]) -> None:
    """Creates roles and users, without permissions: emulators ask for none.

    Args:
        iam: boto3's client of the emulated IAM, whose account is empty.
        arns: of roles and users, such as ``arn:aws:iam::111122223333:role/teams/deploy``.
    """
    for arn in dict.fromkeys(arns):
        *_, account, resource = arn.split(":")
        kind, *folders, name = resource.split("/")
        path = "/".join(["", *folders, ""])
        if kind == "user":
            iam.create_user(UserName=name, Path=path)
            continue
        trust = {"Effect": "Allow", "Principal": {"AWS": f"arn:aws:iam::{account}:root"}, "Action": "sts:AssumeRole"}
        document = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
        iam.create_role(RoleName=name, Path=path, AssumeRolePolicyDocument=document)


def create_policy(iam: Any, arn: str) -> None:
    """Creates a managed policy that allows everything: emulators ask for none. AWS's own exist.

    Args:
        iam: boto3's client of the emulated IAM, whose account is empty.
        arn: of the policy, such as ``arn:aws:iam::111122223333:policy/teams/boundary``.
    """
    *_, account, resource = arn.split(":")
    if account == "aws":
        return
    _, *folders, name = resource.split("/")
    everything = {"Effect": "Allow", "Action": "*", "Resource": "*"}
    document = json.dumps({"Version": "2012-10-17", "Statement": [everything]})
    iam.create_policy(PolicyName=name, Path="/".join(["", *folders, ""]), PolicyDocument=document)
