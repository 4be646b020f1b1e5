from __future__ import annotations

import json
from typing import Any

import pytest

from penstock.infra.environment_file import load
from penstock.infra.pipeline.__main__ import main
from penstock.infra.pipeline.deploy_role import concourse_trust, github_trust, permissions

PRODUCTION = load("production")
ACCOUNT = PRODUCTION.spec.account


def _statements(text: str) -> dict[str, dict[str, Any]]:
    return {statement["Sid"]: statement for statement in json.loads(text)["Statement"]}


def test_githubs_role_is_for_one_repository_and_one_environment_of_it() -> None:
    trust = _statements(github_trust(ACCOUNT, "aws", "team/jobs", "production"))["Trust"]
    assert trust["Action"] == ["sts:AssumeRoleWithWebIdentity"]
    assert trust["Principal"] == {"Federated": f"arn:aws:iam::{ACCOUNT}:oidc-provider/token.actions.githubusercontent.com"}
    assert trust["Condition"] == {
        "StringEquals": {
            "token.actions.githubusercontent.com:aud": "sts.amazonaws.com",
            "token.actions.githubusercontent.com:sub": "repo:team/jobs:environment:production",
        }
    }


def test_concourses_role_is_for_one_job() -> None:
    trust = _statements(concourse_trust(ACCOUNT, "aws", "ci.example.com", "main/penstock//deploy-production"))["Trust"]
    assert trust["Condition"]["StringEquals"]["ci.example.com:sub"] == "main/penstock//deploy-production"


def test_the_role_may_do_nothing_in_another_region_and_to_no_role_of_others() -> None:
    statements = _statements(permissions(PRODUCTION, "aws"))
    assert statements["Stacks"]["Condition"] == {"StringEquals": {"aws:RequestedRegion": "us-east-1"}}
    assert "iam:*" not in statements["Stacks"]["Action"]
    assert statements["OwnRoles"]["Resource"] == [f"arn:aws:iam::{ACCOUNT}:role/penstock-production-*"]
    changing = {action for one in statements.values() if one["Resource"] == ["*"] for action in one["Action"] if action.startswith("iam:")}
    assert changing == {"iam:Get*", "iam:List*"}
    assert not [action for one in statements.values() for action in one["Action"] if action == "*"]


def test_the_documents_are_printed_for_an_environment(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["role", "production", "--github", "team/jobs"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == {
        "trust": json.loads(github_trust(ACCOUNT, "aws", "team/jobs", "production")),
        "permissions": json.loads(permissions(PRODUCTION, "aws")),
    }


def test_an_unknown_environment_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["role", "no-such", "--concourse", "ci.example.com"]) == 2
    assert capsys.readouterr().err.startswith("error[INF-001]")
