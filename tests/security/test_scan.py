"""The gate on the shipped stacks, and on a stack that must fail."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from penstock.scripts.cli.command import main
from penstock.scripts.errors import ProviderNotFound
from penstock.scripts.provisioning.stacks import Stack
from penstock.scripts.security import checkov, offline_plan

pytestmark = pytest.mark.emulated

# Expected findings of the stack and the manifest below, by the scanner's ids.
BAD_RULES = {
    "aws_s3_bucket.open": {
        "CKV2_AWS_6",
        "CKV2_AWS_61",
        "CKV2_AWS_62",
        "CKV_AWS_18",
        "CKV_AWS_21",
        "CKV_AWS_144",
        "CKV_AWS_145",
    },
    "aws_vpc_security_group_ingress_rule.ssh": {"CKV_AWS_24"},
    "aws_eks_cluster.open": {"CKV_AWS_37", "CKV_AWS_38", "CKV_AWS_39", "CKV_AWS_58"},
    "aws_iam_policy.everything": {
        "CKV_AWS_62",
        "CKV_AWS_63",
        "CKV_AWS_286",
        "CKV_AWS_287",
        "CKV_AWS_288",
        "CKV_AWS_289",
        "CKV_AWS_290",
        "CKV_AWS_355",
        "CKV2_AWS_40",
    },
    "aws_sqs_queue.plain": {"CKV_AWS_27"},
    "aws_kms_key.still": {"CKV_AWS_7", "CKV2_AWS_64"},
}
BAD_STACK: dict[str, Any] = {
    "aws_s3_bucket": {"open": {"bucket": "penstock-bad"}},
    "aws_vpc_security_group_ingress_rule": {
        "ssh": {"ip_protocol": "tcp", "from_port": 22, "to_port": 22, "cidr_ipv4": "0.0.0.0/0", "security_group_id": "sg-0123456789abcdef0"}
    },
    "aws_eks_cluster": {
        "open": {
            "name": "bad",
            "role_arn": "arn:aws:iam::123456789012:role/bad",
            "vpc_config": {"subnet_ids": ["subnet-1", "subnet-2"], "endpoint_public_access": True, "public_access_cidrs": ["0.0.0.0/0"]},
        }
    },
    "aws_iam_policy": {
        "everything": {
            "name": "everything",
            "policy": json.dumps({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}),
        }
    },
    "aws_sqs_queue": {"plain": {"name": "plain", "sqs_managed_sse_enabled": False}},
    "aws_kms_key": {"still": {"description": "never rotated"}},
}
BAD_POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "bad", "namespace": "default"},
    "spec": {"hostNetwork": True, "containers": [{"name": "bad", "image": "bad:latest", "securityContext": {"privileged": True}}]},
}
BAD_POD_RULES = {"CKV_K8S_16", "CKV_K8S_19", "CKV_K8S_14", "CKV_K8S_23", "CKV_K8S_37", "CKV_K8S_31", "CKV_K8S_13", "CKV_K8S_11"}


@pytest.fixture(scope="module")
def bad(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """The scanner's findings in the bad stack: rules by resource."""
    if shutil.which("terraform") is None:
        pytest.skip("terraform is not in PATH")
    folder = tmp_path_factory.mktemp("bad")
    stack = _bad_stack(folder / "stacks" / "bad")
    (folder / "plans").mkdir()
    try:
        plan = offline_plan.plan(stack)
    except ProviderNotFound as error:
        pytest.skip(error.render())
    (folder / "plans" / "bad.json").write_text(json.dumps(plan), encoding="utf-8")
    return _rules(checkov.scan(folder / "plans", ["terraform_plan"]))


def _bad_stack(folder: Path) -> Stack:
    folder.mkdir(parents=True)
    content = {
        "terraform": {
            "required_providers": {"aws": {"source": "aws", "version": "5.100.0"}},
            "backend": {"local": {"path": "bad.tfstate"}},
        },
        "provider": {"aws": [{"region": "us-east-1", "skip_credentials_validation": True, "skip_requesting_account_id": True}]},
        "resource": BAD_STACK,
    }
    (folder / "cdk.tf.json").write_text(json.dumps(content), encoding="utf-8")
    return Stack("bad", folder, ())


def _rules(scan: checkov.Scan) -> dict[str, set[str]]:
    rules: dict[str, set[str]] = {}
    for finding in scan.findings:
        rules.setdefault(finding.path.split("/", 1)[1], set()).add(finding.rule)
    return rules


@pytest.mark.timeout(900)
def test_a_bad_stack_fails_with_exactly_the_rules_that_it_breaks(bad: dict[str, set[str]]) -> None:
    assert bad == BAD_RULES


@pytest.mark.timeout(900)
def test_a_bad_pod_fails_with_the_rules_that_it_breaks(tmp_path: Path) -> None:
    folder = tmp_path / "manifests"
    folder.mkdir()
    (folder / "bad.yaml").write_text(yaml.safe_dump(BAD_POD), encoding="utf-8")
    scan = checkov.scan(folder, ["kubernetes"])
    assert scan.resource_count == 1
    assert _rules(scan)["Pod.default.bad"] >= BAD_POD_RULES


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("environment", ["production"])
def test_a_shipped_environment_passes_the_gate(environment: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["scan", environment, "-o", "json"])
    said = capsys.readouterr()
    assert code == 0, said.out
    document = json.loads(said.out)
    assert document["waived"]
    assert set(document["scanned"]) >= {"network", "checkpoints", "kafka", "cluster", "karpenter", "registry", "jobs", "observability"}
    assert {"karpenter-charts", "jobs-charts", "observability-charts"} <= set(document["scanned"])
