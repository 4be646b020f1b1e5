from __future__ import annotations

from typing import Any

import pytest

from penstock.scripts.provisioning import planned_changes
from penstock.scripts.provisioning.changes_table import document, render
from penstock.scripts.provisioning.deployment import Deferred
from penstock.scripts.provisioning.planned_changes import StackChanges, losses
from penstock.scripts.render.screen import Screen


def _resource(address: str, *actions: str, **change: Any) -> dict[str, Any]:
    return {"address": address, "mode": "managed", "type": address.split(".")[0], "change": {"actions": list(actions), **change}}


def _plan(*resources: dict[str, Any], **rest: Any) -> dict[str, Any]:
    return {"resource_changes": list(resources), **rest}


def test_what_a_plan_does_is_counted_by_what_it_means() -> None:
    data = {**_resource("data.aws_partition.p", "read"), "mode": "data"}
    plan = _plan(
        data,
        _resource("aws_s3_bucket.a", "no-op"),
        _resource("aws_s3_bucket.b", "create"),
        _resource("aws_iam_role.c", "update"),
        _resource("aws_sqs_queue.d", "delete", "create"),
        _resource("aws_sqs_queue.e", "create", "delete"),
        _resource("aws_sns_topic.f", "delete"),
        output_changes={"vpc_id": {"actions": ["no-op"]}, "to_come": {"actions": ["create"]}},
    )
    changes = planned_changes.read("network", plan)
    assert str(changes) == "1 to create, 1 to change, 2 to replace, 1 to destroy"
    assert changes.outputs == {"vpc_id"}
    assert not changes.empty


def test_a_plan_of_no_change_is_empty_and_one_of_an_output_alone_is_not() -> None:
    same = {"actions": ["no-op"]}
    assert planned_changes.read("a", _plan(_resource("x.y", "no-op"), output_changes={"o": same})).empty
    changed = planned_changes.read("a", _plan(output_changes={"o": {"actions": ["update"]}}))
    assert str(changed) == "outputs change"
    assert not changed.empty


def test_an_import_is_no_creation() -> None:
    changes = planned_changes.read("a", _plan(_resource("aws_s3_bucket.b", "no-op", importing={"id": "b"})))
    assert str(changes) == "1 to import"
    assert not changes.empty


@pytest.mark.parametrize("actions", [("delete",), ("delete", "create"), ("create", "delete")])
def test_a_plan_that_deletes_a_resource_with_data_is_refused_with_the_name_that_would_allow_it(actions: tuple[str, ...]) -> None:
    plan = _plan(_resource("aws_kms_key.key", *actions, replace_paths=[["multi_region"]]), _resource("aws_iam_role.r", *actions))
    changes = planned_changes.read("checkpoints", plan)
    (loss,) = losses([changes])
    assert loss.path == "checkpoints/aws_kms_key.key"
    assert "multi_region" in loss.given
    assert loss.exit_code == 1
    assert losses([changes], ["checkpoints/aws_kms_key.key"]) == []


def test_buckets_keys_brokers_log_groups_and_the_cluster_hold_data() -> None:
    expected = {
        "aws_s3_bucket",
        "aws_kms_key",
        "aws_msk_cluster",
        "aws_msk_serverless_cluster",
        "aws_cloudwatch_log_group",
        "aws_eks_cluster",
    }
    assert expected <= planned_changes.STATEFUL_TYPES


def test_the_table_names_what_is_not_merely_created_and_what_waits() -> None:
    plan = _plan(_resource("aws_s3_bucket.b", "create"), _resource("aws_sqs_queue.q", "delete", "create", replace_paths=[["name"]]))
    planned: dict[str, StackChanges | Deferred] = {
        "network": planned_changes.read("network", plan),
        "cluster": Deferred("cluster", "network is applied", 12),
    }
    assert render(planned, Screen()).splitlines() == [
        "  stack         plan",
        "  network       1 to create, 1 to replace",
        "           -/+  aws_sqs_queue.q (forced by name)",
        "  cluster       12 resources, planned once network is applied",
        "",
        "Plan: 13 to create, 1 to replace",
    ]
    first, second = document(planned)
    assert [change["action"] for change in first["changes"]] == ["create", "replace"]
    assert second == {"stack": "cluster", "waitsFor": "network is applied", "resources": 12}
