from __future__ import annotations

from typing import Any

import pytest

from tests.scripts.emulation.conftest import Account, name, refusal

pytestmark = pytest.mark.emulated

INVALID = (400, "InvalidParameterException")


def _made(account: Account, cluster: str, **asked: Any) -> Any:
    own = {"clusterName": cluster, "nodegroupName": name("group"), "subnets": account.subnets, "nodeRole": account.node_role}
    return account.eks.create_nodegroup(**{**own, **asked})["nodegroup"]


@pytest.fixture(scope="module")
def cluster(account: Account) -> str:
    created: str = account.cluster()["name"]
    return created


def test_a_group_has_nothing_that_was_not_asked_for(account: Account, cluster: str) -> None:
    made = _made(account, cluster)
    assert account.eks.describe_nodegroup(clusterName=cluster, nodegroupName=made["nodegroupName"])["nodegroup"] == made
    assert not {"remoteAccess", "launchTemplate", "labels", "taints"} & set(made)
    assert "remoteAccessSecurityGroup" not in made["resources"]
    assert (made["amiType"], made["version"], made["status"]) == ("AL2023_x86_64_STANDARD", "1.35", "ACTIVE")


def test_the_image_is_that_of_the_machines(account: Account, cluster: str) -> None:
    assert _made(account, cluster, instanceTypes=["m7g.large"])["amiType"] == "AL2023_ARM_64_STANDARD"
    wrong = {"instanceTypes": ["m7g.large"], "amiType": "AL2023_x86_64_STANDARD"}
    assert refusal(lambda: _made(account, cluster, **wrong)) == INVALID


@pytest.mark.parametrize(
    "asked",
    [
        {"instanceTypes": ["m99.large"]},
        {"scalingConfig": {"minSize": 3, "maxSize": 2, "desiredSize": 2}},
        {"scalingConfig": {"minSize": 1, "maxSize": 0, "desiredSize": 0}},
        {"subnets": ["subnet-0"]},
        {"nodeRole": "arn:aws:iam::123456780000:role/nobody"},
        {"version": "1.36"},
        {"taints": [{"key": "a", "effect": "NoSchedule"}]},
        {"launchTemplate": {"name": "nobody"}},
    ],
    ids=str,
)
def test_a_group_that_can_not_be_is_refused(account: Account, cluster: str, asked: dict[str, Any]) -> None:
    assert refusal(lambda: _made(account, cluster, **asked)) == INVALID


def test_a_launch_template_says_disk_and_access_itself(account: Account, cluster: str) -> None:
    template = account.ec2.create_launch_template(LaunchTemplateName=name("template"), LaunchTemplateData={"EbsOptimized": True})
    named = {"id": template["LaunchTemplate"]["LaunchTemplateId"], "version": "1"}
    made = _made(account, cluster, launchTemplate=named)
    assert made["launchTemplate"] == {**named, "name": template["LaunchTemplate"]["LaunchTemplateName"]}
    assert "diskSize" not in made
    assert refusal(lambda: _made(account, cluster, launchTemplate=named, diskSize=20)) == INVALID


def test_the_role_of_a_group_may_join_while_a_group_has_it(account: Account) -> None:
    own = account.cluster()["name"]
    role = account.role("ec2.amazonaws.com")
    first, second = (_made(account, own, nodeRole=role)["nodegroupName"] for _ in range(2))
    entry = account.eks.describe_access_entry(clusterName=own, principalArn=role)["accessEntry"]
    assert (entry["type"], entry["kubernetesGroups"]) == ("EC2_LINUX", ["system:nodes"])
    assert refusal(lambda: account.eks.delete_cluster(name=own)) == (409, "ResourceInUseException")
    account.eks.delete_nodegroup(clusterName=own, nodegroupName=first)
    assert account.eks.list_access_entries(clusterName=own)["accessEntries"] == [role]
    account.eks.delete_nodegroup(clusterName=own, nodegroupName=second)
    assert account.eks.list_access_entries(clusterName=own)["accessEntries"] == []
    assert refusal(lambda: account.eks.delete_nodegroup(clusterName=own, nodegroupName=second)) == (404, "ResourceNotFoundException")
    account.eks.delete_cluster(name=own)


def test_a_group_changes_its_size_labels_and_taints(account: Account, cluster: str) -> None:
    taint = {"key": "CriticalAddonsOnly", "value": "true", "effect": "NO_SCHEDULE"}
    made = _made(account, cluster, labels={"a": "1", "b": "2"}, taints=[taint])
    asked = {
        "labels": {"addOrUpdateLabels": {"a": "3"}, "removeLabels": ["b"]},
        "taints": {"removeTaints": [taint]},
        "scalingConfig": {"maxSize": 5},
    }
    account.eks.update_nodegroup_config(clusterName=cluster, nodegroupName=made["nodegroupName"], **asked)
    now = account.eks.describe_nodegroup(clusterName=cluster, nodegroupName=made["nodegroupName"])["nodegroup"]
    assert (now["labels"], now["taints"], now["scalingConfig"]["maxSize"]) == ({"a": "3"}, [], 5)


def test_a_group_of_an_unknown_cluster_is_not_found(account: Account) -> None:
    assert refusal(lambda: _made(account, "nobody")) == (404, "ResourceNotFoundException")
