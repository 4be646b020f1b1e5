from __future__ import annotations

import json
import zlib
from typing import Any

import pytest

from penstock.infra.environment import Environment
from penstock.infra.environment_file import load
from penstock.scripts.emulation.emulated_aws import EmulatedAws
from penstock.scripts.provisioning import state_bucket
from penstock.scripts.provisioning.aws_access import AwsAccess
from penstock.scripts.provisioning.errors import OtherAccount, StateBucketMissing, StatePlaceUnfit
from tests.emulated.small_stacks import environment


@pytest.fixture
def access(aws: EmulatedAws, request: pytest.FixtureRequest) -> AwsAccess:
    """An environment of the test's own."""
    return AwsAccess(environment(aws, f"boot-{zlib.crc32(request.node.name.encode())}"))


def test_the_bucket_is_made_private_versioned_encrypted_and_for_tls_only(access: AwsAccess) -> None:
    made = state_bucket.bootstrap(access)
    it: dict[str, Any] = {"Bucket": made.bucket}
    s3 = access.client("s3")
    assert made.created
    assert s3.get_bucket_versioning(**it)["Status"] == "Enabled"
    assert set(s3.get_public_access_block(**it)["PublicAccessBlockConfiguration"].values()) == {True}
    assert s3.get_bucket_ownership_controls(**it)["OwnershipControls"]["Rules"] == [{"ObjectOwnership": "BucketOwnerEnforced"}]
    assert "ServerSideEncryptionConfiguration" in s3.get_bucket_encryption(**it)
    (statement,) = json.loads(s3.get_bucket_policy(**it)["Policy"])["Statement"]
    assert (statement["Effect"], statement["Condition"]) == ("Deny", {"Bool": {"aws:SecureTransport": "false"}})
    assert {rule["ID"] for rule in s3.get_bucket_lifecycle_configuration(**it)["Rules"]} == {
        "expire-old-states",
        "abort-unfinished-uploads",
    }
    assert {"Key": "penstock:state", "Value": "terraform"} in s3.get_bucket_tagging(**it)["TagSet"]


def test_run_again_it_does_nothing(access: AwsAccess) -> None:
    state_bucket.bootstrap(access)
    again = state_bucket.bootstrap(access)
    assert (again.created, again.corrected) == (False, ())
    assert str(again).endswith("no changes")


def test_what_differs_is_corrected_and_said_and_what_a_team_has_added_stays(access: AwsAccess) -> None:
    bucket = state_bucket.bootstrap(access).bucket
    s3 = access.client("s3")
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Suspended"})
    own = {"Sid": "Auditors", "Effect": "Allow", "Principal": {"AWS": "arn:aws:iam::000000000000:root"}, "Action": "s3:GetObject"}
    theirs = {**own, "Resource": f"arn:aws:s3:::{bucket}/*"}
    s3.put_bucket_policy(Bucket=bucket, Policy=json.dumps({"Version": "2012-10-17", "Statement": [theirs]}))
    s3.put_bucket_tagging(Bucket=bucket, Tagging={"TagSet": [{"Key": "cost-centre", "Value": "7"}]})
    corrected = state_bucket.bootstrap(access)
    assert corrected.corrected == ("versions", "TLS-only policy", "tags")
    assert str(corrected) == f"{bucket} exists; corrected: versions, TLS-only policy, tags"
    statements = json.loads(s3.get_bucket_policy(Bucket=bucket)["Policy"])["Statement"]
    assert [statement["Sid"] for statement in statements] == ["Auditors", "TlsOnly"]
    tags = {tag["Key"]: tag["Value"] for tag in s3.get_bucket_tagging(Bucket=bucket)["TagSet"]}
    assert tags == {"cost-centre": "7", "penstock:state": "terraform"}
    assert state_bucket.bootstrap(access).corrected == ()


def test_credentials_of_another_account_are_refused(access: AwsAccess) -> None:
    data = access.environment.model_dump(by_alias=True, exclude_none=True)
    data["spec"]["account"] = "111111111111"
    with pytest.raises(OtherAccount) as raised:
        AwsAccess(Environment.model_validate(data)).check_account()
    assert raised.value.given.startswith("000000000000")


def test_an_environment_with_its_state_in_files_has_no_bucket_to_make(aws: EmulatedAws) -> None:
    with pytest.raises(StatePlaceUnfit) as raised:
        state_bucket.bootstrap(AwsAccess(load("local").at(aws.endpoint)))
    assert "spec.state.bucket" in raised.value.fix


def test_a_bucket_that_is_missing_says_how_it_is_made(access: AwsAccess) -> None:
    with pytest.raises(StateBucketMissing) as raised:
        state_bucket.check(access)
    assert raised.value.fix == f"penstock bootstrap {access.environment.name}"
    assert raised.value.exit_code == 4
    state_bucket.bootstrap(access)
    state_bucket.check(access)
