from __future__ import annotations

from typing import Any

import pytest

from tests.scripts.emulation.conftest import Account, refusal

pytestmark = pytest.mark.emulated

INVALID = (400, "InvalidParameterException")
GONE = (404, "ResourceNotFoundException")


@pytest.fixture
def cluster(account: Account) -> str:
    created: str = account.cluster()["name"]
    return created


def _associate(account: Account, cluster: str, **asked: Any) -> Any:
    own = {"clusterName": cluster, "namespace": "clicks", "serviceAccount": "driver", "roleArn": account.pod_role}
    return account.eks.create_pod_identity_association(**{**own, **asked})["association"]


def test_an_association_is_made_changed_and_deleted(account: Account, cluster: str) -> None:
    made = _associate(account, cluster)
    named = {"clusterName": cluster, "associationId": made["associationId"]}
    assert account.eks.describe_pod_identity_association(**named)["association"] == made
    other = account.role("pods.eks.amazonaws.com", ("sts:AssumeRole", "sts:TagSession"))
    account.eks.update_pod_identity_association(**named, roleArn=other)
    assert account.eks.describe_pod_identity_association(**named)["association"]["roleArn"] == other
    account.eks.delete_pod_identity_association(**named)
    assert refusal(lambda: account.eks.describe_pod_identity_association(**named)) == GONE
    assert refusal(lambda: account.eks.delete_pod_identity_association(**named)) == GONE


def test_a_service_account_has_one_role(account: Account, cluster: str) -> None:
    _associate(account, cluster)
    _associate(account, cluster, namespace="orders")
    assert refusal(lambda: _associate(account, cluster)) == (409, "ResourceInUseException")
    listed = account.eks.list_pod_identity_associations(clusterName=cluster, namespace="orders")["associations"]
    assert [one["namespace"] for one in listed] == ["orders"]


def test_a_role_that_pods_may_not_take_is_refused(account: Account, cluster: str) -> None:
    for role in ("arn:aws:iam::123456780000:role/nobody", account.node_role, account.role("pods.eks.amazonaws.com")):
        assert refusal(lambda role=role: _associate(account, cluster, roleArn=role)) == INVALID  # type: ignore[misc]


def test_a_request_without_a_role_or_a_cluster_is_refused(account: Account, cluster: str) -> None:
    asked = {"clusterName": cluster, "namespace": "clicks", "serviceAccount": "driver"}
    assert refusal(lambda: account.eks.create_pod_identity_association(**asked)) == INVALID
    assert refusal(lambda: _associate(account, "nobody")) == GONE
