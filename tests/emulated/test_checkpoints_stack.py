from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.infra.environment import Environment
from penstock.scripts.errors import TerraformFailed
from tests.emulated.conftest import AppliedStack, terraform

BUCKETS = ("checkpoints", "output")


def _name(stack: AppliedStack, bucket: str) -> str:
    name: str = getattr(stack.environment.spec.buckets, bucket)
    return name


def test_all_of_the_stack_is_applied(checkpoints: AppliedStack) -> None:
    synthesized = json.loads((checkpoints.terraform.folder / "cdk.tf.json").read_text())["resource"]
    addresses = {f"{kind}.{name}" for kind, named in synthesized.items() for name in named}
    assert {change.address for change in checkpoints.applied.changes} == addresses
    assert checkpoints.applied.count("create") == len(addresses)


def test_a_second_plan_is_empty(checkpoints: AppliedStack) -> None:
    assert not checkpoints.terraform.plan()


def test_the_outputs_are_those_of_the_environment(checkpoints: AppliedStack) -> None:
    outputs = checkpoints.applied.outputs
    assert outputs == checkpoints.terraform.output()
    for bucket in BUCKETS:
        assert outputs[f"{bucket}_bucket"] == _name(checkpoints, bucket)
        assert outputs[f"{bucket}_bucket_arn"] == f"arn:aws:s3:::{_name(checkpoints, bucket)}"
    assert outputs["key_arn"].startswith("arn:aws:kms:us-east-1:000000000000:key/")


@pytest.mark.parametrize("bucket", BUCKETS)
def test_a_bucket_is_private_versioned_and_for_tls_only(checkpoints: AppliedStack, bucket: str) -> None:
    s3, name = checkpoints.s3, _name(checkpoints, bucket)
    assert s3.get_bucket_versioning(Bucket=name)["Status"] == "Enabled"
    assert set(s3.get_public_access_block(Bucket=name)["PublicAccessBlockConfiguration"].values()) == {True}
    assert s3.get_bucket_ownership_controls(Bucket=name)["OwnershipControls"]["Rules"] == [{"ObjectOwnership": "BucketOwnerEnforced"}]
    (statement,) = json.loads(s3.get_bucket_policy(Bucket=name)["Policy"])["Statement"]
    assert (statement["Effect"], statement["Condition"]) == ("Deny", {"Bool": {"aws:SecureTransport": "false"}})
    assert statement["Resource"] == [f"arn:aws:s3:::{name}", f"arn:aws:s3:::{name}/*"]
    tags = {tag["Key"]: tag["Value"] for tag in s3.get_bucket_tagging(Bucket=name)["TagSet"]}
    assert tags == {"penstock:environment": "local"}


@pytest.mark.parametrize("bucket", BUCKETS)
def test_an_object_is_encrypted_with_the_stacks_key_and_has_a_version(checkpoints: AppliedStack, bucket: str) -> None:
    s3, name = checkpoints.s3, _name(checkpoints, bucket)
    s3.put_object(Bucket=name, Key="probe", Body=b"x")
    head = s3.head_object(Bucket=name, Key="probe")
    assert (head["ServerSideEncryption"], head["SSEKMSKeyId"]) == ("aws:kms", checkpoints.applied.outputs["key_arn"])
    assert head["BucketKeyEnabled"]
    assert head["VersionId"] != "null"


def test_the_lifecycle_is_there(checkpoints: AppliedStack) -> None:
    def rules(bucket: str) -> set[str]:
        result = checkpoints.s3.get_bucket_lifecycle_configuration(Bucket=_name(checkpoints, bucket))["Rules"]
        assert all(rule["Status"] == "Enabled" for rule in result)
        return {rule["ID"] for rule in result}

    assert rules("checkpoints") == {"abort-unfinished-uploads", "expire-old-versions", "expire-delete-markers"}
    assert rules("output") == {"abort-unfinished-uploads"}


def test_the_credentials_of_another_account_are_refused(checkpoints: AppliedStack, tmp_path: Path) -> None:
    data = checkpoints.environment.model_dump(by_alias=True, exclude_none=True)
    data["spec"]["account"] = "111111111111"
    with pytest.raises(TerraformFailed) as raised:
        terraform(checkpoints.aws, Environment.model_validate(data), tmp_path).plan()
    assert "account ID not allowed: 000000000000" in raised.value.given
