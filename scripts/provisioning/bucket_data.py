"""Data in a bucket: whether it has any, and its permanent deletion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from botocore.exceptions import ClientError

from penstock.scripts.errors import AwsRefused
from penstock.scripts.provisioning.aws_access import AwsAccess, code_of, translated

# Source: Amazon S3 API reference, DeleteObjects: at most 1,000 keys per request.
BATCH = 1000


def holds_data(aws: AwsAccess, bucket: str) -> bool:
    """Whether a bucket contains objects or noncurrent versions.

    Args:
        aws: AWS of the environment.
        bucket: the bucket's name.

    Raises:
        PenstockError: TOOL-030, DEP-001, RUN-020 or RUN-021.
    """
    with translated(f"bucket {bucket}"):
        try:
            said = aws.client("s3").list_object_versions(Bucket=bucket, MaxKeys=1)
        except ClientError as error:
            if code_of(error) == "NoSuchBucket":
                return False
            raise
    return bool(said.get("Versions") or said.get("DeleteMarkers"))


def empty(aws: AwsAccess, bucket: str) -> int:
    """Delete all versions of all objects.

    Args:
        aws: AWS of the environment.
        bucket: the bucket's name.

    Returns:
        The number of deleted versions and delete markers.

    Raises:
        AwsRefused: RUN-020, also if S3 refuses to delete single objects.
        PenstockError: TOOL-030, DEP-001 or RUN-021.
    """
    s3 = aws.client("s3")
    count = 0
    with translated(f"bucket {bucket}"):
        for page in s3.get_paginator("list_object_versions").paginate(Bucket=bucket, PaginationConfig={"PageSize": BATCH}):
            versions = [*page.get("Versions", ()), *page.get("DeleteMarkers", ())]
            for start in range(0, len(versions), BATCH):
                count += _delete(s3, bucket, versions[start : start + BATCH])
    return count


def _delete(s3: Any, bucket: str, versions: list[Mapping[str, Any]]) -> int:
    objects = [{"Key": one["Key"], "VersionId": one["VersionId"]} for one in versions]
    said = s3.delete_objects(Bucket=bucket, Delete={"Objects": objects, "Quiet": True})
    for error in said.get("Errors", ()):
        given = f"{error.get('Code')}: {error.get('Message')}"
        raise AwsRefused(
            path=f"s3://{bucket}/{error.get('Key')}", given=given, need="s3:DeleteObjectVersion", fix="check the bucket's object locks"
        )
    return len(objects)
