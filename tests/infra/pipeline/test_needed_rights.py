"""The rights that create the stacks' resources, against the role that is to have them."""

from __future__ import annotations

import json
from typing import Any

import botocore.session
import pytest

from penstock.infra.environment_file import load
from penstock.infra.pipeline.deploy_role import permissions
from penstock.infra.pipeline.needed_rights import _CREATED, needed_rights, statement_of
from tests.infra.iam_evaluation import allowed

PRODUCTION = load("production")
BOUNDARY = f"arn:aws:iam::{PRODUCTION.spec.account}:policy/limits"
SPOT = "spot.amazonaws.com"
# Services whose actions have another prefix in IAM than in boto3.
_SERVICES = {"aps": "amp", "es": "opensearch"}
# Actions that are no operation of the API.
_OTHERS = {"budgets:ModifyBudget": "CreateBudget"}


def resources() -> list[tuple[str, dict[str, Any]]]:
    named = {"aws_iam_service_linked_role": SPOT}
    return [
        (kind, {argument: named.get(kind, f"{PRODUCTION.prefix}-x")} if argument else {}) for kind, (_, argument, _) in _CREATED.items()
    ]


@pytest.mark.parametrize("boundary", [None, BOUNDARY])
def test_the_pipelines_role_has_every_right_by_the_statement_that_is_named(boundary: str | None) -> None:
    environment = PRODUCTION.with_spec(permissions_boundary=boundary)
    statements = {one["Sid"]: one for one in json.loads(permissions(environment, "aws"))["Statement"]}
    found = list(needed_rights(environment, "aws", resources()))
    assert {right.type for right in found} == set(_CREATED)
    for right in found:
        for action in right.actions:
            sid = statement_of(environment, "aws", action, right.resource)
            assert allowed([statements[sid]], action, right.resource, right.conditions), (sid, action)


def test_the_actions_are_those_of_the_services_apis() -> None:
    session = botocore.session.get_session()
    for actions, _, _ in _CREATED.values():
        for action in actions:
            prefix, _, name = action.partition(":")
            assert _OTHERS.get(action, name) in session.get_service_model(_SERVICES.get(prefix, prefix)).operation_names, action


def test_a_type_is_asked_for_once_and_by_a_name_that_is_known() -> None:
    roles = [("aws_iam_role", {"name": "${other}"}), ("aws_iam_role", {"name": "a-role"}), ("aws_iam_role", {"name": "b-role"})]
    (right,) = needed_rights(PRODUCTION, "aws-cn", roles)
    assert right.resource == f"arn:aws-cn:iam::{PRODUCTION.spec.account}:role/a-role"
    assert right.actions == ("iam:CreateRole", "iam:PutRolePolicy", "iam:AttachRolePolicy")


def test_what_needs_no_right_of_its_own_is_left_out() -> None:
    assert list(needed_rights(PRODUCTION, "aws", [("aws_route_table_association", {}), ("terraform_data", {})])) == []
