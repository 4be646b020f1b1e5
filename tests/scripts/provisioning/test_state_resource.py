from __future__ import annotations

from penstock.scripts.provisioning.state_resource import StateResource, state_resources

STATE = {
    "version": 4,
    "resources": [
        {"mode": "data", "type": "aws_partition", "name": "partition", "instances": [{"attributes": {"id": "aws"}}]},
        {
            "mode": "managed",
            "type": "aws_s3_bucket",
            "name": "output",
            "instances": [{"attributes": {"bucket": "b"}, "dependencies": ["aws_kms_key.key", "data.aws_partition.partition"]}],
        },
        {
            "mode": "managed",
            "type": "aws_subnet",
            "name": "private",
            "instances": [{"index_key": 0, "attributes": {}}, {"index_key": "b", "attributes": {}}],
        },
    ],
}


def test_the_resources_of_a_state_are_read_with_what_they_were_made_of() -> None:
    bucket, first, second = state_resources(STATE)
    assert bucket == StateResource(
        "aws_s3_bucket.output", "aws_s3_bucket", {"bucket": "b"}, ("aws_kms_key.key", "data.aws_partition.partition")
    )
    assert [first.address, second.address] == ["aws_subnet.private[0]", 'aws_subnet.private["b"]']


def test_an_empty_state_holds_nothing() -> None:
    assert state_resources({}) == []


def test_a_setting_belongs_to_its_bucket_or_its_repository() -> None:
    assert StateResource("x.y", "aws_s3_bucket_policy", {"bucket": "b"}).whole == "b"
    assert StateResource("x.y", "aws_ecr_repository", {"name": "jobs", "repository_url": "u"}).whole == "jobs"
    assert StateResource("x.y", "aws_ecr_lifecycle_policy", {"repository": "jobs"}).whole == "jobs"
    assert StateResource("x.y", "aws_iam_role", {"name": "jobs"}).whole is None
