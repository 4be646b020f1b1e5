"""Resources that are there although no state knows them, taken over instead of stumbled upon.

Terraform writes a state in S3 every 20 seconds: a deploy that is killed leaves behind what was made since then. The next deploy plans it
anew, and AWS answers that the name is taken, or makes it twice. Such a resource is imported, if its tag says that it is this environment's.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from botocore.exceptions import ClientError

from penstock.scripts.provisioning.aws_access import AwsAccess, code_of, translated
from penstock.scripts.provisioning.errors import NameTaken
from penstock.scripts.provisioning.planned_changes import ResourceChange

TAG = "penstock:environment"
# Terraform reads all files of the folder; this one is ours alone.
FILE = "penstock-adopted.tf.json"
_ABSENT = {
    "404",
    "NoSuchBucket",
    "NoSuchEntity",
    "NotFoundException",
    "ResourceNotFoundException",
    "RepositoryNotFoundException",
    "AWS.SimpleQueueService.NonExistentQueue",
    "QueueDoesNotExist",
}


@dataclass(frozen=True)
class Found:
    """A resource that is there.

    Args:
        id: what Terraform imports it by.
        tags: its tags.
        fresh: whether it is so empty that it can only be of an apply that was cut short before it set the tags.
    """

    id: str
    tags: Mapping[str, str]
    fresh: bool = False


def importable(aws: AwsAccess, creates: Iterable[ResourceChange]) -> dict[str, str]:
    """Those of the resources to be created that are there already, and the environment's.

    Args:
        aws: of the environment.
        creates: what a plan creates.

    Returns:
        What Terraform imports each by, by address.

    Raises:
        NameTaken: DEP-013, one is there and is somebody else's.
        PenstockError: TOOL-030, DEP-001, RUN-020 or RUN-021.
    """
    imported: dict[str, str] = {}
    for change in creates:
        attribute, look = _LOOKS.get(change.type, ("", None))
        # A name that is not known before the apply is one that AWS or Terraform makes up: nobody has it yet.
        name = (change.after or {}).get(attribute)
        if look is None or change.action != "create" or not name:
            continue
        found = _found(aws, look, change.address, str(name))
        if found is not None:
            _check_owner(aws, change, found)
            imported[change.address] = found.id
    return imported


def write(folder: Path, imported: Mapping[str, str]) -> None:
    """Tells Terraform what to import, in the stack's folder; nothing takes away what was told before."""
    file = folder / FILE
    file.unlink(missing_ok=True)
    if imported:
        blocks = [{"to": address, "id": id} for address, id in imported.items()]
        file.write_text(json.dumps({"import": blocks}, indent=2), encoding="utf-8")


Look = Callable[[AwsAccess, str], Found | None]


def _found(aws: AwsAccess, look: Look, address: str, name: str) -> Found | None:
    with translated(address):
        try:
            return look(aws, name)
        except ClientError as error:
            if code_of(error) in _ABSENT:
                return None
            raise


def _check_owner(aws: AwsAccess, change: ResourceChange, found: Found) -> None:
    owner = found.tags.get(TAG)
    if owner == aws.environment.name or (owner is None and found.fresh):
        return
    given = f"{found.id} exists, " + (f"of environment {owner}" if owner else f"without the tag {TAG}")
    fix = f"use another name in the environment file, or tag it {TAG}={aws.environment.name} to import it"
    raise NameTaken(path=change.address, given=given, need="an unused name", fix=fix)


def _bucket(aws: AwsAccess, name: str) -> Found | None:
    s3 = aws.client("s3")
    try:
        s3.head_bucket(Bucket=name, ExpectedBucketOwner=aws.environment.spec.account)
    except ClientError as error:
        if code_of(error) == "403":
            # Another account's: Terraform will say so, in S3's words.
            return None
        raise
    try:
        tags = {tag["Key"]: tag["Value"] for tag in s3.get_bucket_tagging(Bucket=name)["TagSet"]}
    except ClientError as error:
        if code_of(error) != "NoSuchTagSet":
            raise
        tags = {}
    empty = not tags and not s3.list_object_versions(Bucket=name, MaxKeys=1).get("Versions")
    return Found(name, tags, fresh=empty)


def _role(aws: AwsAccess, name: str) -> Found | None:
    role = aws.client("iam").get_role(RoleName=name)["Role"]
    return Found(name, _pairs(role.get("Tags", [])))


def _log_group(aws: AwsAccess, name: str) -> Found | None:
    logs = aws.client("logs")
    groups = logs.describe_log_groups(logGroupNamePrefix=name)["logGroups"]
    group = next((group for group in groups if group["logGroupName"] == name), None)
    if group is None:
        return None
    tags = logs.list_tags_for_resource(resourceArn=group["arn"].removesuffix(":*"))["tags"]
    # EKS and MSK make the group by themselves when they write before it is there.
    return Found(name, tags, fresh=not tags)


def _eks_cluster(aws: AwsAccess, name: str) -> Found | None:
    cluster = aws.client("eks").describe_cluster(name=name)["cluster"]
    return Found(name, cluster.get("tags", {}))


def _msk_cluster(aws: AwsAccess, name: str) -> Found | None:
    clusters = aws.client("kafka").list_clusters_v2(ClusterNameFilter=name)["ClusterInfoList"]
    cluster = next((cluster for cluster in clusters if cluster["ClusterName"] == name), None)
    return Found(cluster["ClusterArn"], cluster.get("Tags", {})) if cluster else None


def _repository(aws: AwsAccess, name: str) -> Found | None:
    ecr = aws.client("ecr")
    (repository,) = ecr.describe_repositories(repositoryNames=[name])["repositories"]
    tags = ecr.list_tags_for_resource(resourceArn=repository["repositoryArn"])["tags"]
    return Found(name, _pairs(tags))


def _queue(aws: AwsAccess, name: str) -> Found | None:
    sqs = aws.client("sqs")
    url = sqs.get_queue_url(QueueName=name)["QueueUrl"]
    return Found(url, sqs.list_queue_tags(QueueUrl=url).get("Tags", {}))


def _key(aws: AwsAccess, description: str) -> Found | None:
    """A key has no name; one with this description and the environment's tag is the one, if it is the only one."""
    kms = aws.client("kms")
    own: list[Found] = []
    for page in kms.get_paginator("list_keys").paginate():
        for listed in page["Keys"]:
            key = kms.describe_key(KeyId=listed["KeyId"])["KeyMetadata"]
            if key.get("Description") == description and key["KeyState"] == "Enabled":
                tags = {tag["TagKey"]: tag["TagValue"] for tag in kms.list_resource_tags(KeyId=key["KeyId"])["Tags"]}
                own += [Found(key["KeyId"], tags)] if tags.get(TAG) == aws.environment.name else []
    return own[0] if len(own) == 1 else None


def _pairs(tags: Iterable[Mapping[str, str]]) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in tags}


# Types that have one name in the account, in this attribute, by which they are found and imported. Those that AWS takes long to make are
# among them.
_LOOKS: dict[str, tuple[str, Look | None]] = {
    "aws_s3_bucket": ("bucket", _bucket),
    "aws_iam_role": ("name", _role),
    "aws_cloudwatch_log_group": ("name", _log_group),
    "aws_eks_cluster": ("name", _eks_cluster),
    "aws_msk_cluster": ("cluster_name", _msk_cluster),
    "aws_msk_serverless_cluster": ("cluster_name", _msk_cluster),
    "aws_ecr_repository": ("name", _repository),
    "aws_sqs_queue": ("name", _queue),
    "aws_kms_key": ("description", _key),
}
