from __future__ import annotations

from typing import Any

import pytest

from penstock.scripts.emulation.eks.addons import KNOWN
from tests.scripts.emulation.conftest import Account, refusal

pytestmark = pytest.mark.emulated

INVALID = (400, "InvalidParameterException")
GONE = (404, "ResourceNotFoundException")


@pytest.fixture
def cluster(account: Account) -> str:
    created: str = account.cluster()["name"]
    return created


def test_an_addon_is_made_changed_and_deleted(account: Account, cluster: str) -> None:
    named = {"clusterName": cluster, "addonName": "vpc-cni"}
    made = account.eks.create_addon(**named, tags={"a": "b"}, configurationValues='{"env": {}}')["addon"]
    assert account.eks.describe_addon(**named)["addon"] == made
    assert (made["status"], made["tags"], made["configurationValues"]) == ("ACTIVE", {"a": "b"}, '{"env": {}}')
    update = account.eks.update_addon(**named, addonVersion="v1.99.0-eksbuild.2")["update"]
    assert (update["type"], update["params"]) == ("AddonUpdate", [{"type": "AddonVersion", "value": "v1.99.0-eksbuild.2"}])
    assert account.eks.describe_addon(**named)["addon"]["addonVersion"] == "v1.99.0-eksbuild.2"
    assert account.eks.list_addons(clusterName=cluster)["addons"] == ["vpc-cni"]
    assert refusal(lambda: account.eks.create_addon(**named)) == (409, "ResourceInUseException")
    assert account.eks.delete_addon(**named)["addon"]["status"] == "DELETING"
    assert refusal(lambda: account.eks.describe_addon(**named)) == GONE
    assert refusal(lambda: account.eks.delete_addon(**named)) == GONE


@pytest.mark.parametrize(
    "asked",
    [
        {"addonName": "nobody"},
        {"addonName": "vpc-cni", "addonVersion": "latest"},
        {"addonName": "kube-proxy", "addonVersion": "v1.36.0-eksbuild.1"},
        {"addonName": "coredns", "configurationValues": "["},
        {"addonName": "coredns", "resolveConflicts": "PERHAPS"},
        {"addonName": "coredns", "serviceAccountRoleArn": "arn:aws:iam::123456780000:role/nobody"},
        {"addonName": "coredns", "podIdentityAssociations": [{"serviceAccount": "coredns"}]},
        {},
    ],
    ids=str,
)
def test_an_addon_that_can_not_be_is_refused(account: Account, cluster: str, asked: dict[str, Any]) -> None:
    assert refusal(lambda: account.eks.create_addon(clusterName=cluster, **asked)) == INVALID


def test_an_addon_of_an_unknown_cluster_is_not_found(account: Account) -> None:
    assert refusal(lambda: account.eks.create_addon(clusterName="nobody", addonName="vpc-cni")) == GONE


def test_an_addons_association_is_its_own(account: Account, cluster: str) -> None:
    named = {"clusterName": cluster, "addonName": "aws-ebs-csi-driver"}
    pods = [{"serviceAccount": "ebs-csi-controller-sa", "roleArn": account.pod_role}]
    made = account.eks.create_addon(**named, podIdentityAssociations=pods)["addon"]
    (summary,) = account.eks.list_pod_identity_associations(clusterName=cluster)["associations"]
    assert made["podIdentityAssociations"] == [summary["associationArn"]]
    assert (summary["ownerArn"], summary["namespace"]) == (made["addonArn"], "kube-system")
    mine = {"clusterName": cluster, "associationId": summary["associationId"]}
    assert refusal(lambda: account.eks.delete_pod_identity_association(**mine)) == (400, "InvalidRequestException")
    account.eks.delete_addon(**named)
    assert account.eks.list_pod_identity_associations(clusterName=cluster)["associations"] == []


def test_versions_are_returned_for_each_addon(account: Account) -> None:
    versions = account.eks.describe_addon_versions(kubernetesVersion="1.35")["addons"]
    assert {addon["addonName"] for addon in versions} == set(KNOWN)
    (proxy,) = account.eks.describe_addon_versions(kubernetesVersion="1.34", addonName="kube-proxy")["addons"]
    (version,) = proxy["addonVersions"]
    assert version["addonVersion"].startswith("v1.34.")
    assert version["compatibilities"][0]["defaultVersion"]
