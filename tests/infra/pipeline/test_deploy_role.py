from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from penstock.infra.environment_file import load
from penstock.infra.parts.kafka import Kafka
from penstock.infra.pipeline.__main__ import main
from penstock.infra.pipeline.deploy_role import concourse_trust, github_trust, permissions
from tests.infra.environments import read
from tests.infra.existing import THEIRS, in_existing
from tests.infra.iam_evaluation import allowed

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
    assert changing == {"iam:Get*", "iam:List*", "iam:SimulatePrincipalPolicy"}
    assert not [action for one in statements.values() for action in one["Action"] if action == "*"]


def test_it_manages_topics_of_the_environments_own_cluster_and_reads_no_records() -> None:
    kafka = f"arn:aws:kafka:us-east-1:{ACCOUNT}"
    cluster, topic = f"{kafka}:cluster/penstock-production/id-1", f"{kafka}:topic/penstock-production/id-1/t"
    statements = json.loads(permissions(PRODUCTION, "aws"))["Statement"]
    here = {"aws:RequestedRegion": "us-east-1"}
    for action in ("Connect", "DescribeCluster"):
        assert allowed(statements, f"kafka-cluster:{action}", cluster, here)
        assert not allowed(statements, f"kafka-cluster:{action}", cluster.replace("penstock-production", "other"), here)
    for action in ("CreateTopic", "AlterTopic", "DescribeTopic", "DescribeTopicDynamicConfiguration", "AlterTopicDynamicConfiguration"):
        assert allowed(statements, f"kafka-cluster:{action}", topic, here)
        assert not allowed(statements, f"kafka-cluster:{action}", topic.replace("penstock-production", "other"), here)
    for action in ("ReadData", "WriteData", "DeleteTopic"):
        assert not allowed(statements, f"kafka-cluster:{action}", topic, here)
    named = [one for one in statements if one["Sid"] != "Stacks"]
    for action in ("CreateTopic", "DescribeTopic", "UpdateTopic"):
        assert allowed(named, f"kafka:{action}", cluster) and allowed(named, f"kafka:{action}", topic)


def test_it_manages_topics_of_the_external_cluster_that_the_environment_names() -> None:
    arn = f"arn:aws:kafka:us-east-1:{ACCOUNT}:cluster/shared/id-2"
    kafka = Kafka.model_validate({"kind": "external", "security": "iam", "clusterArn": arn, "bootstrapServers": "b-1.example:9098"})
    statements = _statements(permissions(PRODUCTION.with_spec(kafka=kafka), "aws"))
    assert statements["ConnectToBrokers"]["Resource"] == [arn]
    assert statements["ManageTopics"]["Resource"] == [f"arn:aws:kafka:us-east-1:{ACCOUNT}:topic/shared/id-2/*"]


def test_it_reads_the_secret_of_external_brokers_and_no_other() -> None:
    secret = f"arn:aws:secretsmanager:us-east-1:{ACCOUNT}:secret:kafka-AbCdEf"
    given = {"kind": "external", "security": "mtls", "secret": secret, "bootstrapServers": "b-1.example:9094"}
    statements = json.loads(permissions(PRODUCTION.with_spec(kafka=Kafka.model_validate(given)), "aws"))["Statement"]
    assert allowed(statements, "secretsmanager:GetSecretValue", secret)
    assert not allowed(statements, "secretsmanager:GetSecretValue", secret.replace("kafka", "other"))
    assert not [action for one in json.loads(permissions(PRODUCTION, "aws"))["Statement"] for action in one["Action"] if "secret" in action]
    key = f"arn:aws:kms:us-east-1:{ACCOUNT}:key/1"
    own = _statements(permissions(PRODUCTION.with_spec(kafka=Kafka.model_validate({**given, "key": key})), "aws"))
    assert own["UseKeyOfBrokersSecret"]["Resource"] == [key]
    context = {"kms:EncryptionContext:SecretARN": secret, "kms:ViaService": "secretsmanager.us-east-1.amazonaws.com"}
    assert allowed([own["UseKeyOfBrokersSecret"]], "kms:Decrypt", key, context)


def test_without_a_boundary_it_grants_any_role_of_the_environment_anything() -> None:
    grants = _statements(permissions(PRODUCTION, "aws"))["Grants"]
    assert grants["Resource"] == [f"arn:aws:iam::{ACCOUNT}:role/penstock-production-*"]
    assert "iam:PutRolePolicy" in grants["Action"]
    assert "Condition" not in grants


def test_with_a_boundary_it_grants_permissions_to_roles_that_have_it_alone_and_can_not_lift_it() -> None:
    boundary = f"arn:aws:iam::{ACCOUNT}:policy/teams/jobs"
    text = permissions(PRODUCTION.with_spec(permissions_boundary=boundary), "aws")
    allowed = {action: statement for statement in json.loads(text)["Statement"] for action in statement["Action"]}
    for action in ("CreateRole", "AttachRolePolicy", "PutRolePolicy", "DetachRolePolicy", "DeleteRolePolicy", "PutRolePermissionsBoundary"):
        assert allowed[f"iam:{action}"]["Condition"] == {"StringEquals": {"iam:PermissionsBoundary": boundary}}, action
    lifting = {"iam:DeleteRolePermissionsBoundary", "iam:CreatePolicyVersion", "iam:SetDefaultPolicyVersion", "iam:DeletePolicy", "iam:*"}
    assert not lifting & allowed.keys()
    # IAM's quota of a managed policy, without white space.
    assert len(json.dumps(json.loads(text), separators=(",", ":"))) <= 6144


def test_it_can_not_change_a_cluster_of_others(tmp_path: Path) -> None:
    assert "ClusterOfOthers" not in _statements(permissions(PRODUCTION, "aws"))
    environment = read(tmp_path, lambda spec: in_existing(spec, THEIRS))
    denied = _statements(permissions(environment, "aws"))["ClusterOfOthers"]
    assert (denied["Effect"], "Principal" in denied) == ("Deny", False)
    assert {"eks:DeleteCluster", "eks:UpdateClusterConfig", "eks:DeleteNodegroup", "eks:DeleteAddon"} <= set(denied["Action"])
    # What the stacks make in it, and what is checked.
    assert not {"eks:CreateAccessEntry", "eks:CreatePodIdentityAssociation", "eks:DescribeAddon"} & set(denied["Action"])
    place = f"arn:aws:eks:us-east-1:{ACCOUNT}"
    assert {f"{place}:cluster/platform", f"{place}:nodegroup/platform/*", f"{place}:addon/platform/*"} <= set(denied["Resource"])


def test_it_creates_the_service_linked_roles_of_named_services_alone() -> None:
    statements = _statements(permissions(PRODUCTION, "aws"))
    services = statements["CreateServiceLinkedRoles"]["Condition"]["StringEquals"]["iam:AWSServiceName"]
    assert {"spot.amazonaws.com", "eks.amazonaws.com", "kafka.amazonaws.com"} <= set(services)
    own = [f"arn:aws:iam::{ACCOUNT}:role/aws-service-role/{service}/*" for service in services]
    assert statements["CreateServiceLinkedRoles"]["Resource"] == statements["ServiceLinkedRoles"]["Resource"] == own


def test_a_name_that_another_environments_begins_with_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = PRODUCTION.model_dump(by_alias=True, exclude_none=True)
    for name in ("prod", "prod-eu"):
        data["metadata"]["name"] = name
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(data), encoding="utf-8")
    assert main(["role", str(tmp_path / "prod.yaml"), "--github", "team/jobs"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("error[INF-055]")
    assert "prod-eu.yaml is prod-eu" in said


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
