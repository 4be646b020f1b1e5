from __future__ import annotations

import re
import zlib
from pathlib import Path

import pytest

from penstock.scripts.emulation.emulated_aws import EmulatedAws
from penstock.scripts.errors import ProviderNotFound
from penstock.scripts.progress import Steps
from penstock.scripts.provisioning import destroy_table, orphans, state_bucket
from penstock.scripts.provisioning.aws_access import AwsAccess
from penstock.scripts.provisioning.deployment import Deployment
from penstock.scripts.provisioning.destruction import Destruction
from penstock.scripts.provisioning.errors import StatefulLoss
from penstock.scripts.render.screen import Screen
from tests.emulated.small_stacks import BucketStack, PlainStacks, environment


@pytest.fixture
def small(aws: EmulatedAws, tmp_path: Path, request: pytest.FixtureRequest) -> BucketStack:
    """A stack in an environment of the test's own."""
    own = environment(aws, f"des-{zlib.crc32(request.node.name.encode())}")
    state_bucket.bootstrap(AwsAccess(own))
    return BucketStack(own, tmp_path / "stacks")


def _deploy(small: BucketStack) -> Deployment:
    deployment = Deployment(small.written(protect=True), AwsAccess(small.environment), Steps())
    try:
        deployment.plan()
    except ProviderNotFound as error:
        pytest.skip(error.render())
    deployment.apply()
    return deployment


def _destroy(small: BucketStack, *buckets: str) -> Destruction:
    return Destruction(small.written(protect=True), AwsAccess(small.environment), Steps(), buckets=buckets)


def test_what_holds_data_stays_with_its_key_a_later_deploy_goes_on_with_it_and_named_it_goes(small: BucketStack) -> None:
    access = AwsAccess(small.environment)
    s3 = access.client("s3")
    _deploy(small)
    s3.put_object(Bucket=small.bucket, Key="offsets/0", Body=b"x")

    first = _destroy(small)
    destroy_actions = first.destroy_actions()
    shown = destroy_table.render(destroy_actions, orphans.remaining(access, destroy_actions), Screen(width=500))
    assert f"--delete-bucket {small.bucket}" in shown
    assert re.search(rf"{small.environment.name}-state +contains Terraform's state", shown)
    (done,) = first.destroy(destroy_actions)
    assert done.applied is not None
    assert done.applied.count("delete") == 2
    assert s3.get_object(Bucket=small.bucket, Key="offsets/0")["Body"].read() == b"x"
    assert s3.get_bucket_encryption(Bucket=small.bucket)
    assert small.other not in {bucket["Name"] for bucket in s3.list_buckets()["Buckets"]}

    # Run again, nothing more goes.
    assert [action.destroyed for action in _destroy(small).destroy_actions()] == [()]

    back = Deployment(small.written(protect=True), access, Steps())
    assert str(back.plan()["store"]) == "2 to create"
    back.apply()
    assert s3.get_object(Bucket=small.bucket, Key="offsets/0")["Body"].read() == b"x"
    renamed = Deployment(small.written({"aws_s3_bucket": {"data": {"bucket": f"{small.bucket}-2"}}}), access, Steps())
    with pytest.raises(StatefulLoss) as raised:
        renamed.plan()
    assert (raised.value.path, raised.value.given) == ("store/aws_s3_bucket.data", "replace, because bucket cannot be changed in place")

    named = _destroy(small, small.bucket)
    destroy_actions = named.destroy_actions()
    key = next(orphan for orphan in orphans.remaining(access, destroy_actions) if orphan.kind == "KMS key")
    assert "deleted after 7 days" in key.why
    named.destroy(destroy_actions)
    left = {bucket["Name"] for bucket in s3.list_buckets()["Buckets"] if bucket["Name"].startswith(small.environment.name)}
    assert left == {f"{small.environment.name}-state"}


def test_what_no_state_knows_is_listed(small: BucketStack) -> None:
    access = AwsAccess(small.environment)
    prefix = small.environment.prefix
    ec2, logs = access.client("ec2"), access.client("logs")
    owned = [{"Key": f"kubernetes.io/cluster/{prefix}", "Value": "owned"}]
    zone = f"{small.environment.spec.region}a"
    volume = ec2.create_volume(AvailabilityZone=zone, Size=7, TagSpecifications=[{"ResourceType": "volume", "Tags": owned}])["VolumeId"]
    image = ec2.describe_images()["Images"][0]["ImageId"]
    tags = [{"ResourceType": "instance", "Tags": [*owned, {"Key": "karpenter.sh/nodepool", "Value": "executors"}]}]
    instance = ec2.run_instances(ImageId=image, MinCount=1, MaxCount=1, TagSpecifications=tags)["Instances"][0]["InstanceId"]
    template = ec2.create_launch_template(
        LaunchTemplateName=prefix,
        LaunchTemplateData={"ImageId": image},
        TagSpecifications=[{"ResourceType": "launch-template", "Tags": [{"Key": "karpenter.k8s.aws/cluster", "Value": prefix}]}],
    )["LaunchTemplate"]["LaunchTemplateId"]
    logs.create_log_group(logGroupName=f"/aws/eks/{prefix}/cluster")
    remaining = {(orphan.kind, orphan.id) for orphan in orphans.remaining(access, [])}
    assert {
        ("EBS volume", volume),
        ("instance", instance),
        ("launch template", template),
        ("log group", f"/aws/eks/{prefix}/cluster"),
        ("state bucket", f"{small.environment.name}-state"),
    } <= remaining
    ec2.terminate_instances(InstanceIds=[instance])


def test_a_stack_that_uses_outputs_of_another_is_destroyed_first(aws: EmulatedAws, tmp_path: Path) -> None:
    own = environment(aws, "des-order")
    state_bucket.bootstrap(AwsAccess(own))
    stacks = PlainStacks(own, tmp_path).written()
    deployment = Deployment(stacks, AwsAccess(own), Steps())
    deployment.plan()
    deployment.apply()
    destruction = Destruction(stacks, AwsAccess(own), Steps())
    done = destruction.destroy(destruction.destroy_actions())
    assert [(one.stack, one.applied.count("delete") if one.applied else 0) for one in done] == [("reader", 1), ("store", 1)]
    # Run again, there is nothing left to do.
    assert [one.applied for one in destruction.destroy(destruction.destroy_actions())] == [None, None]
