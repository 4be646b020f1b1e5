"""Deploys that were killed: the next one converges, and takes over what the first had made."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.scripts.provisioning import import_blocks
from penstock.scripts.provisioning.aws_access import AwsAccess
from penstock.scripts.provisioning.errors import NameTaken, StateLocked
from penstock.scripts.provisioning.planned_changes import StackChanges
from tests.emulated.deploying import applying, blocking, deployment, own, pipe, small
from tests.emulated.small_stacks import BucketStack

__all__ = ["own", "pipe", "small"]


def test_a_deploy_killed_midway_converges_on_the_next_run(small: BucketStack, pipe: Path) -> None:
    own = small.environment
    killed = deployment(own, small.written({"terraform_data": blocking(pipe, "aws_s3_bucket.data", "aws_kms_key.key")}))
    killed.plan()
    with applying(killed, pipe):
        pass
    again = deployment(own, small.written())
    with pytest.raises(StateLocked) as still:
        again.plan()
    again.terraform("store").unlock(still.value.fix.split()[-1])
    planned = again.plan()["store"]
    assert isinstance(planned, StackChanges)
    # Where Terraform had not written its state yet, what is there is taken over; nothing that holds data is made twice or is in a delete.
    created = {change.address for change in planned.changes if change.action == "create"}
    assert not {"aws_s3_bucket.data", "aws_kms_key.key"} & created
    assert not [change for change in planned.changes if change.loses_state]
    again.apply()
    buckets = {bucket["Name"] for bucket in AwsAccess(own).client("s3").list_buckets()["Buckets"]}
    assert {small.bucket, small.other} <= buckets
    kms = AwsAccess(own).client("kms")
    keys = [kms.describe_key(KeyId=key["KeyId"])["KeyMetadata"] for key in kms.list_keys()["Keys"]]
    assert [key["Description"] for key in keys].count(own.name) == 1


def test_resources_that_a_killed_deploy_lost_track_of_are_imported_and_foreign_ones_are_not(small: BucketStack) -> None:
    own = small.environment
    s3, sqs = AwsAccess(own).client("s3"), AwsAccess(own).client("sqs")
    s3.create_bucket(Bucket=small.bucket)
    s3.put_object(Bucket=small.bucket, Key="theirs", Body=b"x")
    sqs.create_queue(QueueName=own.name, tags={"penstock:environment": own.name})
    stacks = small.written({"aws_sqs_queue": {"q": {"name": own.name}}})
    with pytest.raises(NameTaken) as raised:
        deployment(own, stacks).plan()
    assert raised.value.path == "aws_s3_bucket.data"
    assert "without the tag penstock:environment" in raised.value.given

    s3.put_bucket_tagging(Bucket=small.bucket, Tagging={"TagSet": [{"Key": "penstock:environment", "Value": own.name}]})
    importing = deployment(own, stacks)
    planned = importing.plan()["store"]
    assert isinstance(planned, StackChanges)
    assert planned.imported == {"aws_s3_bucket.data", "aws_sqs_queue.q"}
    assert not [change for change in planned.changes if change.loses_state]
    importing.apply()
    assert s3.get_object(Bucket=small.bucket, Key="theirs")["Body"].read() == b"x"
    assert not (stacks[0].folder / import_blocks.FILE).exists()
