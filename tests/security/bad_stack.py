"""A stack and a pod that break many rules, written by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from penstock.scripts.provisioning.stacks import Stack
from penstock.scripts.security.parts import KUBERNETES, Part

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


def bad_stack(folder: Path, provider: dict[str, Any]) -> Stack:
    """The stack, with the provider of the others, so that it is planned with them."""
    folder.mkdir(parents=True)
    required = {"required_providers": {"aws": {"source": "aws", "version": "5.100.0"}}}
    content = {"terraform": required, "provider": provider, "resource": BAD_STACK}
    (folder / "cdk.tf.json").write_text(json.dumps(content), encoding="utf-8")
    return Stack("bad", folder, ())


def bad_pod() -> Part:
    """The pod."""
    return Part("bad-pod", KUBERNETES, yaml.safe_dump(BAD_POD), 1, (), {})
