"""What an account must have before the first deploy, or AWS refuses it halfway: administrators, Spot's role, the image."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from penstock.infra.image_tag import image_tags
from penstock.jobs.spec import load
from penstock.scripts.provisioning.aws_access import AwsAccess, Caller, if_there, translated
from penstock.scripts.provisioning.finding import OK, Finding, missing
from penstock.scripts.provisioning.import_blocks import TAG
from penstock.scripts.render.node_shares import counted
from penstock.sizing.errors import PenstockError

# Source: Amazon EC2 User Guide, "Service-linked role for Spot Instance requests".
SPOT_ROLE = "AWSServiceRoleForEC2Spot"


def look(aws: AwsAccess, caller: Caller) -> list[Finding]:
    """Check what the environment takes for granted in its account; read-only.

    Args:
        aws: AWS of the environment.
        caller: the identity that deploys.
    """
    found = (_administrators(aws, caller), _spot_role(aws), _images(aws))
    return [finding for finding in found if finding is not None]


def _administrators(aws: AwsAccess, caller: Caller) -> Finding | None:
    eks = aws.environment.spec.eks
    if eks is None or not eks.admins:
        return None
    purpose = "spec.eks.admins; EKS refuses one that does not exist, and nobody else may apply charts"

    def faults() -> Iterator[tuple[str, str]]:
        own = [arn for arn in eks.admins if arn.split(":")[4] == aws.environment.spec.account]
        for arn in own:
            if not _exists(partial(_principal, aws, arn)):
                yield f"{arn} does not exist", "create it, or correct spec.eks.admins"
        if eks.existing is None and aws.environment.spec.endpoints is None and not any(is_principal(caller, arn) for arn in eks.admins):
            yield f"the caller, {caller.arn}, is none of them", "add the caller's role to spec.eks.admins, or deploy as one of them"

    return _found("administrators", purpose, faults, ", ".join(arn.rpartition("/")[2] for arn in eks.admins))


def _spot_role(aws: AwsAccess) -> Finding | None:
    nodes = aws.environment.spec.nodes
    if nodes is None:
        return None
    purpose = "with it EC2 launches spot instances; an account has at most one"

    def faults() -> Iterator[tuple[str, str]]:
        role = _role(aws, SPOT_ROLE)
        owner = {tag["Key"]: tag["Value"] for tag in role.get("Tags", [])}.get(TAG) if role else None
        if role and nodes.spot_service_role == "create" and owner != aws.environment.name:
            by = f", created by environment {owner}" if owner else ""
            yield f"{SPOT_ROLE} exists already{by}", "set spec.nodes.spotServiceRole: existing"
        if not role and nodes.spot_service_role == "existing":
            yield f"{SPOT_ROLE} does not exist", "set spec.nodes.spotServiceRole: create"

    return _found("Spot's role", purpose, faults, f"spotServiceRole: {nodes.spot_service_role}")


def _images(aws: AwsAccess) -> Finding | None:
    spec = aws.environment.spec
    if spec.eks is None or not spec.jobs:
        return None
    repository = f"{aws.environment.prefix}/jobs"

    def faults() -> Iterator[tuple[str, str]]:
        ecr = aws.client("ecr")
        jobs_of: dict[str, list[str]] = {}
        for job, tag in image_tags(aws.environment, [load(path).job.metadata.name for path in spec.job_paths]).items():
            jobs_of.setdefault(tag, []).append(job)
        for tag, jobs in jobs_of.items():
            if not if_there(partial(ecr.describe_images, repositoryName=repository, imageIds=[{"imageTag": tag}])):
                fix = f"push {repository}:{tag} before the stack jobs-charts is deployed: penstock image build --push, or the pipeline"
                yield f"{repository} has no tag {tag}, which {counted(len(jobs), 'job')} would run: {', '.join(jobs)}", fix

    return _found("image", "of the jobs; without it no driver starts, and its release is rolled back", faults, repository)


def _found(name: str, purpose: str, faults: Callable[[], Iterator[tuple[str, str]]], said: str) -> Finding:
    """The finding of all faults together; where AWS refuses to tell, nothing is known."""
    try:
        with translated(name):
            listed = list(faults())
    except PenstockError as error:
        return missing(
            name, said=f"not checked: {error.code}: {error.given}", purpose=purpose, fix=" ".join(error.fix.split()), needed=False
        )
    if not listed:
        return Finding(name, OK, said, purpose)
    fixes = dict.fromkeys(fix for _, fix in listed)
    return missing(name, said="; ".join(fault for fault, _ in listed), purpose=purpose, fix="; ".join(fixes), needed=True)


def _principal(aws: AwsAccess, arn: str) -> Any:
    kind, name = kind_and_name(arn)
    iam = aws.client("iam")
    return iam.get_user(UserName=name)["User"] if kind == "user" else iam.get_role(RoleName=name)["Role"]


def _role(aws: AwsAccess, name: str) -> dict[str, Any] | None:
    role: dict[str, Any] | None = if_there(lambda: aws.client("iam").get_role(RoleName=name)["Role"])
    return role


def _exists(ask: Callable[[], Any]) -> bool:
    return if_there(ask) is not None


def is_principal(caller: Caller, arn: str) -> bool:
    """Whether a caller is a principal; a role's session is its role, whose path the session's ARN leaves out."""
    if ":assumed-role/" not in caller.arn:
        return caller.arn == arn
    return ("role", caller.arn.split("/")[1]) == kind_and_name(arn) and caller.account == arn.split(":")[4]


def kind_and_name(arn: str) -> tuple[str, str]:
    """``role`` or ``user``, and the name without its path, of an ARN of IAM."""
    resource = arn.split(":", 5)[5]
    return resource.partition("/")[0], resource.rpartition("/")[2]
