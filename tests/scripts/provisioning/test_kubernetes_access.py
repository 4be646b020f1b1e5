from __future__ import annotations

import base64
from urllib.parse import parse_qs, urlsplit

from penstock.infra.environment_file import load
from penstock.scripts.provisioning.aws_access import AwsAccess
from penstock.scripts.provisioning.kubernetes_access import eks_token


def test_the_token_is_a_question_to_sts_signed_with_the_clusters_name() -> None:
    token = eks_token(AwsAccess(load("local").at("http://127.0.0.1:1")), "penstock-local")
    prefix, _, encoded = token.partition(".")
    assert prefix == "k8s-aws-v1"
    assert not encoded.endswith("=")
    url = urlsplit(base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode())
    asked = {name: values[0] for name, values in parse_qs(url.query).items()}
    assert asked["Action"] == "GetCallerIdentity"
    assert asked["X-Amz-SignedHeaders"] == "host;x-k8s-aws-id"
    assert asked["X-Amz-Expires"] == "60"
    assert "Cluster" not in asked
    assert len(asked["X-Amz-Signature"]) == 64
