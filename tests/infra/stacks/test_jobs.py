from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.infra.environment import Environment
from penstock.infra.environment_file import load
from penstock.infra.manifests import topics_job
from penstock.infra.manifests.deployed_job import service_account
from penstock.infra.plans import plans
from tests.infra.environments import read
from tests.infra.stacks.synthesized import Content, content, of_cluster

CHECKPOINTS = SimpleNamespace(
    checkpoints_bucket_arn="arn:aws:s3:::the-checkpoints",
    output_bucket_arn="arn:aws:s3:::the-output",
    key_arn="arn:aws:kms:us-east-1:111122223333:key/1",
)
KAFKA = SimpleNamespace(
    cluster_arn="arn:aws:kafka:us-east-1:111122223333:cluster/the-brokers/uuid-1", security_group_id="sg-brokers", security="iam"
)
CLUSTER = SimpleNamespace(cluster_name="the-cluster", node_security_group_ids=("sg-cluster",))
JOBS = ("user-credit", "flights")


def synthesized(folder: Path, environment: Environment, kafka: Any = KAFKA) -> Content:
    from penstock.infra.stacks.jobs import JobsStack

    environment_plans = plans(environment)
    return content(folder, "jobs", lambda app: JobsStack(app, environment, environment_plans, CHECKPOINTS, kafka, CLUSTER))


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Content:
    """The stack of the production environment."""
    return synthesized(tmp_path_factory.mktemp("jobs"), load("production"))


def policy(text: str) -> list[dict[str, Any]]:
    statements: list[dict[str, Any]] = json.loads(text)["Statement"]
    return statements


def replaced(text: str) -> str:
    """The text after Terraform's function ``replace``."""
    call = re.compile(r'\$\{replace\("([^"]*)", "([^"]*)", "([^"]*)"\)\}')
    return call.sub(lambda match: match[1].replace(match[2], match[3]), text)


@pytest.mark.parametrize("job", JOBS)
def test_a_role_is_taken_by_pods_of_this_cluster_alone(stack: Content, job: str) -> None:
    role = stack["resource"]["aws_iam_role"][f"job-{job}"]
    assert role["name"] == f"penstock-production-job-{job}"
    (trust,) = policy(role["assume_role_policy"])
    assert trust["Principal"] == {"Service": "pods.eks.amazonaws.com"}
    assert trust["Action"] == ["sts:AssumeRole", "sts:TagSession"]
    assert trust["Condition"] == of_cluster("production")


@pytest.mark.parametrize("job", JOBS)
@pytest.mark.parametrize("component", ["driver", "executor"])
def test_a_role_is_given_to_the_two_service_accounts_of_its_job(stack: Content, job: str, component: Any) -> None:
    association = stack["resource"]["aws_eks_pod_identity_association"][f"job-{job}-{component}"]
    assert {key: value for key, value in association.items() if key != "//"} == {
        "cluster_name": "the-cluster",
        "namespace": f"job-{job}",
        "service_account": service_account(job, component),
        "role_arn": f"${{aws_iam_role.job-{job}.arn}}",
    }
    assert len(stack["resource"]["aws_eks_pod_identity_association"]) == 2 * len(JOBS)


def test_rights_on_topics_come_from_the_clusters_own_arn(stack: Content) -> None:
    attached = stack["resource"]["aws_iam_role_policy"]["job-user-credit"]
    assert attached["role"] == "${aws_iam_role.job-user-credit.name}"
    by_sid = {statement["Sid"]: statement for statement in policy(replaced(attached["policy"]))}
    of_kind = "arn:aws:kafka:us-east-1:111122223333:{}/the-brokers/uuid-1"
    assert by_sid["ConnectToBrokers"]["Resource"] == [of_kind.format("cluster")]
    assert by_sid["ReadOwnTopics"]["Resource"] == [f"{of_kind.format('topic')}/{topic}" for topic in ("events-a", "events-b")]
    assert f"{of_kind.format('group')}/penstock.user-credit" in by_sid["UseOwnGroups"]["Resource"]
    assert f"{of_kind.format('transactional-id')}/penstock.user-credit" in by_sid["UseOwnTransactions"]["Resource"]


def test_the_brokers_are_open_to_the_cluster_on_the_port_of_iam_and_no_other(stack: Content) -> None:
    (rule,) = stack["resource"]["aws_vpc_security_group_ingress_rule"].values()
    assert {key: value for key, value in rule.items() if key != "//"} == {
        "description": "Jobs of the cluster",
        "security_group_id": "sg-brokers",
        "referenced_security_group_id": "sg-cluster",
        "ip_protocol": "tcp",
        "from_port": 9098,
        "to_port": 9098,
    }


def test_brokers_of_others_are_left_to_them(tmp_path: Path) -> None:
    external = SimpleNamespace(cluster_arn=None, security_group_id=None, security="tls")
    stack = synthesized(tmp_path, load("production"), external)
    assert "aws_vpc_security_group_ingress_rule" not in stack["resource"]
    assert "kafka-cluster" not in json.dumps(stack)


def test_roles_may_read_the_secret_of_brokers_that_ask_for_a_password(tmp_path: Path) -> None:
    secret = "arn:aws:secretsmanager:us-east-1:111122223333:secret:kafka-AbCdEf"
    kafka = {"kind": "external", "bootstrapServers": "b:9096", "security": "sasl-scram", "secret": secret}
    external = SimpleNamespace(cluster_arn=None, security_group_id=None, security="sasl-scram")
    stack = synthesized(tmp_path, read(tmp_path, lambda spec: spec.update(kafka=kafka)), external)
    roles = [policy(attached["policy"]) for attached in stack["resource"]["aws_iam_role_policy"].values()]
    assert roles
    for statements in roles:
        (reads,) = [statement for statement in statements if statement["Action"] == ["secretsmanager:GetSecretValue"]]
        assert secret in reads["Resource"]


def test_pods_that_apply_topics_have_a_role_of_their_own_where_msks_api_does_not_serve(tmp_path: Path, stack: Content) -> None:
    assert "topics" not in stack["resource"]["aws_iam_role"]
    environment = read(tmp_path, lambda spec: spec.update(kafka={"kind": "serverless"}))
    serverless = synthesized(tmp_path, environment)["resource"]
    assert serverless["aws_iam_role"]["topics"]["name"] == "penstock-production-topics"
    identity = serverless["aws_eks_pod_identity_association"]["topics"]
    assert (identity["namespace"], identity["service_account"]) == (topics_job.NAMESPACE, topics_job.ACCOUNT)
    (text,) = [one["policy"] for one in serverless["aws_iam_role_policy"].values() if "aws_iam_role.topics." in one["role"]]
    statements = {statement["Sid"]: statement for statement in policy(text)}
    assert set(statements) == {"ConnectToBrokers", "ManageTopics"}
    assert statements["ManageTopics"]["Resource"][0].endswith(":topic/penstock-production/*/*")
    assert not [action for one in statements.values() for action in one["Action"] if "Data" in action or "Delete" in action]


def test_with_external_brokers_that_role_reads_their_secret_and_nothing_else(tmp_path: Path) -> None:
    secret = "arn:aws:secretsmanager:us-east-1:111122223333:secret:kafka-AbCdEf"
    kafka = {"kind": "external", "bootstrapServers": "b:9096", "security": "sasl-scram", "secret": secret}
    external = SimpleNamespace(cluster_arn=None, security_group_id=None, security="sasl-scram")
    resources = synthesized(tmp_path, read(tmp_path, lambda spec: spec.update(kafka=kafka)), external)["resource"]
    (text,) = [one["policy"] for one in resources["aws_iam_role_policy"].values() if "aws_iam_role.topics." in one["role"]]
    assert [statement["Sid"] for statement in policy(text)] == ["ReadBrokersSecret"]


def test_an_inline_policy_stays_below_what_iam_takes(stack: Content) -> None:
    # Source: IAM User Guide, "IAM and AWS STS quotas": 10,240 characters of a role's inline policies, without white space.
    for attached in stack["resource"]["aws_iam_role_policy"].values():
        assert len("".join(attached["policy"].split())) < 10_240


def test_long_names_are_cut_and_stay_two(tmp_path: Path) -> None:
    specs = Path(__file__).resolve().parents[3] / "jobs/specs"
    text = (specs / "flights.yaml").read_text("utf-8")
    names = [f"{'a' * 44}{last}" for last in "xy"]
    for name in names:
        changed = text.replace("name: flights", f"name: {name}", 1).replace("path: flights", f"path: {name}", 1)
        (tmp_path / f"{name}.yaml").write_text(changed, "utf-8")
    environment = read(tmp_path, lambda spec: spec.update(jobs=[f"{name}.yaml" for name in names]))
    stack = synthesized(tmp_path, environment)
    roles = {role["name"] for role in stack["resource"]["aws_iam_role"].values()}
    assert len(roles) == 2
    assert all(len(role) == 64 for role in roles)


def test_the_roles_are_outputs_for_the_other_stacks(stack: Content) -> None:
    assert stack["output"]["role_arns"]["value"] == {job: f"${{aws_iam_role.job-{job}.arn}}" for job in JOBS}
