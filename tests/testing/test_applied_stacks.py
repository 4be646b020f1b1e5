from __future__ import annotations

import pytest

from penstock.scripts.provisioning.planned_changes import ResourceChange, StackChanges
from penstock.testing.applied_stacks import emulator, refuse_changes, refuse_remains


def test_a_second_plan_with_changes_shows_both_sides() -> None:
    refuse_changes([])
    group = ResourceChange(
        "aws_eks_node_group.system",
        "aws_eks_node_group",
        "change",
        before={"disk_size": 50, "tags": {"a": "b"}},
        after={"disk_size": 80, "tags": {"a": "b"}},
    )
    bucket = ResourceChange("aws_s3_bucket.output", "aws_s3_bucket", "create", after={"bucket": "output"})
    with pytest.raises(AssertionError) as raised:
        refuse_changes(
            [StackChanges("cluster", (group,)), StackChanges("checkpoints", (bucket,)), StackChanges("jobs", (), changes_outputs=True)]
        )
    assert str(raised.value).splitlines() == [
        "a second plan has changes:",
        "  change cluster/aws_eks_node_group.system",
        "    disk_size: 50 -> 80",
        "  create checkpoints/aws_s3_bucket.output",
        "  change jobs: only outputs",
    ]


def test_what_a_destroy_leaves_fails() -> None:
    refuse_remains({"network": []})
    with pytest.raises(AssertionError, match=r"network/aws_vpc\.this"):
        refuse_remains({"checkpoints": [], "network": ["aws_vpc.this"]})


def test_the_emulator_is_localstack_where_one_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LOCALSTACK_ENDPOINT", raising=False)
    assert [emulator(None), emulator("localstack")] == ["moto", "localstack"]
    monkeypatch.setenv("LOCALSTACK_ENDPOINT", "http://127.0.0.1:4566")
    assert [emulator(None), emulator("moto")] == ["localstack", "moto"]
