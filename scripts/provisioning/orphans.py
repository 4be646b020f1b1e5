"""Resources that remain in the account after all stacks are destroyed, because no stack created them or AWS keeps them for a while."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.scripts.provisioning.aws_access import AwsAccess, translated
from penstock.scripts.provisioning.import_blocks import TAG
from penstock.scripts.provisioning.keeping import DestroyAction
from penstock.scripts.provisioning.state_resource import StateResource
from penstock.sizing.errors import PenstockError

# Source: Karpenter 1.14, tags of instances and launch templates; EBS CSI driver, "k8s-tag-cluster-id".
_NODE_POOL_TAG = "karpenter.sh/nodepool"
_LAUNCH_TEMPLATE_TAG = "karpenter.k8s.aws/cluster"
_ALIVE = ["pending", "running", "stopping", "stopped"]


@dataclass(frozen=True)
class Orphan:
    """A resource that the destroy does not delete.

    Args:
        kind: its type.
        id: its id.
        why: why it remains, and what happens to it.
    """

    kind: str
    id: str
    why: str


def remaining(aws: AwsAccess, destroy_actions: Sequence[DestroyAction]) -> list[Orphan]:
    """List the resources that would be orphaned.

    Args:
        aws: AWS of the environment.
        destroy_actions: destroy actions of its stacks.

    Returns:
        One entry each; a request that AWS rejects is also an entry, because its result is unknown.
    """
    known = [resource for action in destroy_actions for resource in action.state.resources]
    return [*_keys(destroy_actions), *_state_bucket(aws), *(orphan for look in _LOOKS for orphan in _looked(look, aws, known))]


Look = Callable[[AwsAccess, Sequence[StateResource]], Iterable[Orphan]]


def _looked(look: Look, aws: AwsAccess, known: Sequence[StateResource]) -> list[Orphan]:
    what = look.__name__.strip("_").replace("_", " ")
    try:
        with translated(what):
            return list(look(aws, known))
    except PenstockError as error:
        return [Orphan(what, "unknown", f"could not be checked: {' '.join(error.given.split())[:120]}")]


def _keys(destroy_actions: Sequence[DestroyAction]) -> Iterator[Orphan]:
    for action in destroy_actions:
        gone = set(action.destroyed)
        for one in action.state.resources:
            if one.type == "aws_kms_key" and one.address in gone:
                days = one.values.get("deletion_window_in_days") or 30
                why = f"of {action.name}; deleted after {days} days, until then the deletion can be canceled"
                yield Orphan("KMS key", str(one.values.get("key_id", "")), why)


def _state_bucket(aws: AwsAccess) -> Iterator[Orphan]:
    state = aws.environment.spec.state
    if state is not None:
        yield Orphan("state bucket", state.bucket, "contains Terraform's state; delete it manually once nothing else is left")


def _instances(aws: AwsAccess, known: Sequence[StateResource]) -> Iterator[Orphan]:
    filters = [{"Name": "tag-key", "Values": [_NODE_POOL_TAG]}, *_of_cluster(aws), {"Name": "instance-state-name", "Values": _ALIVE}]
    for page in _pages(aws, "describe_instances", Filters=filters):
        for reservation in page["Reservations"]:
            for instance in reservation["Instances"]:
                yield Orphan("instance", instance["InstanceId"], "of Karpenter; terminated when its NodePool is drained")


def _launch_templates(aws: AwsAccess, known: Sequence[StateResource]) -> Iterator[Orphan]:
    filters = [{"Name": f"tag:{_LAUNCH_TEMPLATE_TAG}", "Values": [aws.environment.cluster_name]}, *_of_environment(aws)]
    for page in _pages(aws, "describe_launch_templates", Filters=filters):
        for template in page["LaunchTemplates"]:
            yield Orphan("launch template", template["LaunchTemplateId"], "of Karpenter; deleted with its EC2NodeClass, free of charge")


def _volumes(aws: AwsAccess, known: Sequence[StateResource]) -> Iterator[Orphan]:
    for page in _pages(aws, "describe_volumes", Filters=[*_of_cluster(aws), {"Name": "status", "Values": ["available"]}]):
        for volume in page["Volumes"]:
            yield Orphan(
                "EBS volume", volume["VolumeId"], f"{volume['Size']} GiB of a retained PersistentVolumeClaim; billed until it is deleted"
            )


def _security_groups(aws: AwsAccess, known: Sequence[StateResource]) -> Iterator[Orphan]:
    vpc, ours = _vpc(known), _ids(known)
    for page in _pages(aws, "describe_security_groups", Filters=[{"Name": "vpc-id", "Values": [vpc]}]) if vpc else ():
        for group in page["SecurityGroups"]:
            # EKS creates one itself and deletes it with the cluster.
            own = group["GroupName"] == "default" or group["GroupName"].startswith("eks-cluster-sg-") or group["GroupId"] in ours
            if not own:
                yield Orphan("security group", group["GroupId"], f"{group['GroupName']}; the VPC cannot be deleted before it")


def _network_interfaces(aws: AwsAccess, known: Sequence[StateResource]) -> Iterator[Orphan]:
    vpc, ours = _vpc(known), _ids(known)
    filters = [{"Name": "vpc-id", "Values": [vpc]}, {"Name": "status", "Values": ["available"]}]
    for page in _pages(aws, "describe_network_interfaces", Filters=filters) if vpc else ():
        for interface in page["NetworkInterfaces"]:
            if interface["NetworkInterfaceId"] not in ours:
                yield Orphan("network interface", interface["NetworkInterfaceId"], "unused; its subnet cannot be deleted before it")


def _log_groups(aws: AwsAccess, known: Sequence[StateResource]) -> Iterator[Orphan]:
    ours = {one.values.get("name") for one in known if one.type == "aws_cloudwatch_log_group"}
    prefix = aws.environment.prefix
    logs = aws.client("logs")
    own = (f"/{prefix}/", f"/penstock/{aws.environment.name}/")
    for start in (f"/aws/eks/{prefix}/", f"/aws/msk/{prefix}/", f"/aws/containerinsights/{prefix}/", *own):
        for page in logs.get_paginator("describe_log_groups").paginate(logGroupNamePrefix=start):
            for group in page["logGroups"]:
                if group["logGroupName"] not in ours:
                    yield Orphan("log group", group["logGroupName"], "created by AWS; billed until it is deleted or its logs expire")


def _tagged_resources(aws: AwsAccess, known: Sequence[StateResource]) -> Iterator[Orphan]:
    """Resources with the environment's tag that are in no state: left by an apply that was killed."""
    arns = {value for one in known for name, value in one.values.items() if name in ("arn", "id") and isinstance(value, str)}
    ids = {arn.rpartition("/")[2] for arn in arns} | _ids(known)
    pages = aws.client("resourcegroupstaggingapi").get_paginator("get_resources")
    for page in pages.paginate(TagFilters=[{"Key": TAG, "Values": [aws.environment.name]}]):
        for one in page["ResourceTagMappingList"]:
            arn = one["ResourceARN"]
            if arn not in arns and arn.rpartition("/")[2] not in ids and arn.rpartition(":")[2] not in ids:
                yield Orphan("tagged resource", arn, "in no state: left by an interrupted deploy, or retained by AWS for a while")


def _of_cluster(aws: AwsAccess) -> list[dict[str, Any]]:
    return [{"Name": f"tag:kubernetes.io/cluster/{aws.environment.cluster_name}", "Values": ["owned"]}, *_of_environment(aws)]


def _of_environment(aws: AwsAccess) -> list[dict[str, Any]]:
    """In an existing cluster, what its owners have launched is theirs: the EC2NodeClass of the stacks tags what is of the environment."""
    return [{"Name": f"tag:{TAG}", "Values": [aws.environment.name]}] if aws.environment.existing_cluster is not None else []


def _pages(aws: AwsAccess, operation: str, **asked: Any) -> Iterator[Any]:
    yield from aws.client("ec2").get_paginator(operation).paginate(**asked)


def _vpc(known: Sequence[StateResource]) -> str | None:
    return next((str(one.values["id"]) for one in known if one.type == "aws_vpc"), None)


def _ids(known: Sequence[StateResource]) -> set[str]:
    return {str(one.values["id"]) for one in known if one.values.get("id")}


_LOOKS: tuple[Look, ...] = (
    _instances,
    _launch_templates,
    _volumes,
    _security_groups,
    _network_interfaces,
    _log_groups,
    _tagged_resources,
)
