from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.infra.environment import Environment
from penstock.infra.environment_file import load
from penstock.infra.stacks.checkpoints import access_logs_bucket

SNAPSHOT = Path(__file__).parent / "snapshots/checkpoints.json"
BUCKETS = ("checkpoints", "output")
Stack = dict[str, Any]


def _resources(stack: Stack) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for kind, named in stack["resource"].items():
        for name, resource in named.items():
            yield kind, name, resource


def _of(stack: Stack, kind: str, name: str) -> dict[str, Any]:
    resource: dict[str, Any] = stack["resource"][kind][name]
    return resource


@pytest.mark.parametrize("bucket", BUCKETS)
def test_a_bucket_takes_requests_over_tls_only_for_itself_and_its_objects(local: Stack, bucket: str) -> None:
    policy = _of(local, "aws_s3_bucket_policy", bucket)
    assert policy["bucket"] == f"${{aws_s3_bucket.{bucket}.id}}"
    arn = f"${{aws_s3_bucket.{bucket}.arn}}"
    (statement,) = json.loads(policy["policy"])["Statement"]
    assert statement == {
        "Sid": "TlsOnly",
        "Effect": "Deny",
        "Principal": "*",
        "Action": ["s3:*"],
        "Resource": [arn, f"{arn}/*"],
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    }


@pytest.mark.parametrize("bucket", BUCKETS)
def test_a_bucket_has_no_public_access_and_no_acls(local: Stack, bucket: str) -> None:
    access = _of(local, "aws_s3_bucket_public_access_block", bucket)
    assert all(access[key] is True for key in ("block_public_acls", "block_public_policy", "ignore_public_acls", "restrict_public_buckets"))
    assert _of(local, "aws_s3_bucket_ownership_controls", bucket)["rule"] == {"object_ownership": "BucketOwnerEnforced"}


@pytest.mark.parametrize("bucket", BUCKETS)
def test_a_bucket_is_versioned_and_encrypted_with_the_stacks_key(local: Stack, bucket: str) -> None:
    assert _of(local, "aws_s3_bucket_versioning", bucket)["versioning_configuration"] == {"status": "Enabled"}
    (rule,) = _of(local, "aws_s3_bucket_server_side_encryption_configuration", bucket)["rule"]
    key = {"sse_algorithm": "aws:kms", "kms_master_key_id": "${aws_kms_key.key.arn}"}
    assert rule == {"apply_server_side_encryption_by_default": key, "bucket_key_enabled": True}


def test_the_key_is_rotated_and_left_to_the_accounts_own_policies(local: Stack) -> None:
    key = _of(local, "aws_kms_key", "key")
    assert key["enable_key_rotation"] is True
    (statement,) = json.loads(key["policy"])["Statement"]
    assert statement["Principal"] == {"AWS": "arn:${data.aws_partition.key-partition.partition}:iam::000000000000:root"}


def test_unfinished_uploads_end_and_old_versions_of_checkpoints_expire(local: Stack) -> None:
    def rules(bucket: str) -> dict[str, dict[str, Any]]:
        return {rule["id"]: rule for rule in _of(local, "aws_s3_bucket_lifecycle_configuration", bucket)["rule"]}

    for bucket in BUCKETS:
        assert rules(bucket)["abort-unfinished-uploads"]["abort_incomplete_multipart_upload"] == [{"days_after_initiation": 7}]
        assert all(rule["status"] == "Enabled" and rule["filter"] == [{"prefix": ""}] for rule in rules(bucket).values())
    assert rules("checkpoints")["expire-old-versions"]["noncurrent_version_expiration"] == [{"noncurrent_days": 14}]
    assert rules("checkpoints")["expire-delete-markers"]["expiration"] == [{"expired_object_delete_marker": True}]
    assert set(rules("output")) == {"abort-unfinished-uploads"}


def test_nothing_that_is_there_now_expires(local: Stack) -> None:
    for bucket in BUCKETS:
        for rule in _of(local, "aws_s3_bucket_lifecycle_configuration", bucket)["rule"]:
            assert all(set(expiration) == {"expired_object_delete_marker"} for expiration in rule.get("expiration", []))


def test_where_it_is_protected_terraform_refuses_to_destroy_what_holds_data(local: Stack, protected: Stack) -> None:
    for kind, name in (("aws_s3_bucket", "checkpoints"), ("aws_s3_bucket", "output"), ("aws_kms_key", "key")):
        assert _of(protected, kind, name)["lifecycle"] == {"prevent_destroy": True}
        assert "lifecycle" not in _of(local, kind, name)
    for bucket in BUCKETS:
        assert _of(protected, "aws_s3_bucket", bucket)["force_destroy"] is False
        assert _of(local, "aws_s3_bucket", bucket)["force_destroy"] is True
    assert _of(protected, "aws_kms_key", "key")["deletion_window_in_days"] == 30


def test_no_credentials_are_in_the_stack(local: Stack, protected: Stack) -> None:
    for stack in (local, protected):
        (provider,) = stack["provider"]["aws"]
        assert not {"access_key", "secret_key", "token", "profile", "shared_credentials_files", "assume_role"} & set(provider)
        assert not re.search(r"AKIA|ASIA|secret", json.dumps(stack), re.IGNORECASE)


def test_a_deploy_with_the_credentials_of_another_account_is_refused(protected: Stack) -> None:
    (provider,) = protected["provider"]["aws"]
    assert provider["allowed_account_ids"] == ["123456789012"]
    assert provider["region"] == "eu-central-1"


def test_an_environment_on_aws_has_no_setting_of_an_emulator(protected: Stack) -> None:
    (provider,) = protected["provider"]["aws"]
    assert set(provider) == {"allowed_account_ids", "default_tags", "region"}


def test_every_resource_is_tagged_with_its_environment_and_the_environments_tags(protected: Stack) -> None:
    (provider,) = protected["provider"]["aws"]
    assert provider["default_tags"] == [{"tags": {"penstock:environment": "protected", "team": "data"}}]


def test_who_reads_a_bucket_is_logged_in_one_that_keeps_the_logs_for_a_year(local: Stack) -> None:
    for bucket in BUCKETS:
        logging = _of(local, "aws_s3_bucket_logging", bucket)
        assert (logging["target_bucket"], logging["target_prefix"]) == ("${aws_s3_bucket.access-logs.bucket}", f"{bucket}/")
        assert logging["depends_on"] == ["aws_s3_bucket_policy.access-logs"]
    rules = {rule["id"]: rule for rule in _of(local, "aws_s3_bucket_lifecycle_configuration", "access-logs")["rule"]}
    assert rules["expire"]["expiration"] == [{"days": 365}]


def test_only_s3_itself_for_this_account_delivers_access_logs(local: Stack) -> None:
    statements = json.loads(_of(local, "aws_s3_bucket_policy", "access-logs")["policy"])["Statement"]
    (delivery,) = [statement for statement in statements if statement["Effect"] == "Allow"]
    assert delivery["Principal"] == {"Service": "logging.s3.amazonaws.com"}
    assert delivery["Action"] == ["s3:PutObject"]
    assert delivery["Condition"] == {"StringEquals": {"aws:SourceAccount": "000000000000"}}
    assert [statement["Sid"] for statement in statements if statement["Effect"] == "Deny"] == ["TlsOnly"]


def test_the_bucket_of_the_access_logs_has_a_name_that_no_other_account_and_region_has() -> None:
    local = load("local")
    assert access_logs_bucket(local) == "penstock-logs-local-000000000000-us-east-1"
    data = local.model_dump(by_alias=True, exclude_none=True)
    data["metadata"]["name"] = "a" * 32
    name = access_logs_bucket(Environment.model_validate(data))
    assert len(name) <= 63
    data["spec"]["buckets"]["accessLogs"] = "our-own-logs"
    assert access_logs_bucket(Environment.model_validate(data)) == "our-own-logs"


def test_the_stack_gives_names_and_arns_to_the_others(local: Stack) -> None:
    assert {name: output["value"] for name, output in local["output"].items()} == {
        "checkpoints_bucket": "${aws_s3_bucket.checkpoints.bucket}",
        "checkpoints_bucket_arn": "${aws_s3_bucket.checkpoints.arn}",
        "output_bucket": "${aws_s3_bucket.output.bucket}",
        "output_bucket_arn": "${aws_s3_bucket.output.arn}",
        "key_arn": "${aws_kms_key.key.arn}",
    }


def test_a_state_is_one_environments_and_names_no_folder_of_this_machine(local: Stack, protected: Stack) -> None:
    for stack, environment in ((local, "local"), (protected, "protected")):
        path = stack["terraform"]["backend"]["local"]["path"]
        assert path.endswith(f"/{environment}/checkpoints.tfstate")
        assert not path.startswith("/")


def test_no_construct_has_moved(local: Stack, protected: Stack) -> None:
    """Terraform identifies a resource by its address: a resource whose address changes is replaced, and its contents are lost.

    For an intended change, update the snapshot and add a `moved` block.
    """
    recorded = json.loads(SNAPSHOT.read_text())
    for stack in (local, protected):
        assert {f"{kind}.{name}": resource["//"]["metadata"]["path"] for kind, name, resource in _resources(stack)} == recorded
