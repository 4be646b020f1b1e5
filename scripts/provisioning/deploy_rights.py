"""Whether the caller may create what a deploy is to create, by IAM's own simulation of its policies; read-only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from penstock.infra.environment_file import argument_of
from penstock.infra.pipeline.needed_rights import NeededRight, needed_rights, statement_of
from penstock.scripts.provisioning.account_checks import kind_and_name
from penstock.scripts.provisioning.aws_access import AwsAccess, Caller, if_there, translated
from penstock.scripts.provisioning.errors import RightMissing
from penstock.sizing.errors import PenstockError, raise_all

_ALLOWED = "allowed"


def check(aws: AwsAccess, caller: Caller, resources: Iterable[tuple[str, Mapping[str, Any]]]) -> str:
    """Check that the policies of the caller, of its boundary and of its organization let it create resources.

    What they let depend on more than is known of a request, such as on its tags, is not judged.

    Args:
        aws: AWS of the environment.
        caller: the identity that deploys.
        resources: Terraform's type and arguments of each resource that is to be created.

    Returns:
        What is said of it: why it is not checked, if it is not.

    Raises:
        RightMissing: DEP-063; several are raised as `Faults`.
    """
    partition = caller.arn.split(":")[1]
    needed = list(needed_rights(aws.environment, partition, resources))
    try:
        principal = _principal(aws, caller)
        if principal is None:
            return f"not checked: {caller.arn} is no role or user of IAM"
        with translated("IAM's policy simulator"):
            faults = [fault for right in needed for fault in _missing(aws, principal, right, partition)]
    except PenstockError as error:
        return f"not checked: {error.code}: {error.given}; allow iam:GetRole and iam:SimulatePrincipalPolicy"
    raise_all(faults)
    return f"{sum(len(right.actions) for right in needed)} actions are allowed"


def is_simulated(aws: AwsAccess, caller: Caller) -> bool:
    """Whether the caller is one whose policies IAM simulates.

    Args:
        aws: AWS of the environment.
        caller: the identity that deploys.
    """
    try:
        return _principal(aws, caller) is not None
    except PenstockError:
        return True


def _principal(aws: AwsAccess, caller: Caller) -> str | None:
    """The ARN of the caller's role or user; None for the account itself, and for sessions of neither."""
    iam, resource = aws.client("iam"), caller.arn.split(":", 5)[5]
    with translated("IAM"):
        if resource.startswith("assumed-role/"):
            # The ARN of a session leaves out the path of its role.
            role = if_there(lambda: iam.get_role(RoleName=resource.split("/")[1])["Role"])
            return None if role is None else str(role["Arn"])
        kind, name = kind_and_name(caller.arn)
        if kind != "user" or caller.arn.split(":")[2] != "iam":
            return None
        user = if_there(lambda: iam.get_user(UserName=name)["User"])
        return None if user is None else str(user["Arn"])


def _missing(aws: AwsAccess, principal: str, right: NeededRight, partition: str) -> Iterator[RightMissing]:
    said = aws.client("iam").simulate_principal_policy(
        PolicySourceArn=principal,
        ActionNames=list(right.actions),
        ResourceArns=[right.resource],
        ContextEntries=[
            {"ContextKeyName": key, "ContextKeyValues": [value], "ContextKeyType": "string"} for key, value in right.conditions.items()
        ],
    )
    for result in said["EvaluationResults"]:
        if result["EvalDecision"] != _ALLOWED and not result.get("MissingContextValues"):
            yield _fault(aws, principal, right, result, partition)


def _fault(aws: AwsAccess, principal: str, right: NeededRight, result: Mapping[str, Any], partition: str) -> RightMissing:
    environment, action = aws.environment, str(result["EvalActionName"])
    sid = statement_of(environment, partition, action, right.resource)
    denied = result["EvalDecision"] == "explicitDeny"
    given = f"{action} on {right.resource}, {'which a policy denies' if denied else 'which no policy allows'}"
    need = f"the right to create {right.type}: statement {sid} of the role's policy"
    show = f"python -m penstock.infra.pipeline role {argument_of(environment)}"
    allow = f"give it that statement, as {show} prints it"
    fix = "take that denial from its policies, its boundary or its organization" if denied else allow
    return RightMissing(path=principal, given=given, need=need, fix=fix)
