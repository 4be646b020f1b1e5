from __future__ import annotations

from typing import Any

import pytest

from tests.scripts.emulation.conftest import Account, refusal

pytestmark = pytest.mark.emulated

INVALID = (400, "InvalidParameterException")
GONE = (404, "ResourceNotFoundException")
VIEW = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSViewPolicy"


@pytest.fixture(scope="module")
def cluster(account: Account) -> str:
    created: str = account.cluster()["name"]
    return created


@pytest.fixture
def entry(account: Account, cluster: str) -> dict[str, Any]:
    """An access entry of a new role."""
    named = {"clusterName": cluster, "principalArn": account.role("ec2.amazonaws.com")}
    created: dict[str, Any] = account.eks.create_access_entry(**named)["accessEntry"]
    return created


def _named(entry: dict[str, Any]) -> dict[str, str]:
    return {key: entry[key] for key in ("clusterName", "principalArn")}


def test_an_entry_is_made_changed_and_deleted(account: Account, entry: dict[str, Any]) -> None:
    named = _named(entry)
    role = entry["principalArn"].rpartition("/")[2]
    assert (entry["type"], entry["username"]) == ("STANDARD", f"arn:aws:sts::123456780000:assumed-role/{role}/{{{{SessionName}}}}")
    assert refusal(lambda: account.eks.create_access_entry(**named)) == (409, "ResourceInUseException")
    account.eks.update_access_entry(**named, kubernetesGroups=["viewers"])
    assert account.eks.describe_access_entry(**named)["accessEntry"]["kubernetesGroups"] == ["viewers"]
    account.eks.delete_access_entry(**named)
    assert refusal(lambda: account.eks.describe_access_entry(**named)) == GONE
    assert refusal(lambda: account.eks.delete_access_entry(**named)) == GONE


@pytest.mark.parametrize(
    "asked",
    [
        {"principalArn": "arn:aws:iam::123456780000:role/nobody"},
        {"principalArn": "arn:aws:iam::123456780000:user/nobody"},
        {"principalArn": "nobody"},
        {"type": "EC2_PERHAPS"},
        {"type": "EC2_LINUX", "kubernetesGroups": ["nodes"]},
        {"kubernetesGroups": ["system:masters"]},
    ],
    ids=str,
)
def test_an_entry_that_can_not_be_is_refused(account: Account, cluster: str, asked: dict[str, Any]) -> None:
    principal = account.role("ec2.amazonaws.com")
    wanted = {"clusterName": cluster, "principalArn": principal, **asked}
    assert refusal(lambda: account.eks.create_access_entry(**wanted)) == INVALID


def test_a_cluster_that_takes_access_from_its_config_map_has_no_entries(account: Account) -> None:
    own = account.cluster(accessConfig={"authenticationMode": "CONFIG_MAP"})["name"]
    assert refusal(lambda: account.eks.list_access_entries(clusterName=own)) == (400, "InvalidRequestException")


def test_a_policy_is_associated_scoped_anew_and_taken_away(account: Account, entry: dict[str, Any]) -> None:
    named = _named(entry)
    account.eks.associate_access_policy(**named, policyArn=VIEW, accessScope={"type": "cluster"})
    again = {"type": "namespace", "namespaces": ["clicks"]}
    account.eks.associate_access_policy(**named, policyArn=VIEW, accessScope=again)
    (policy,) = account.eks.list_associated_access_policies(**named)["associatedAccessPolicies"]
    assert (policy["policyArn"], policy["accessScope"]) == (VIEW, again)
    account.eks.disassociate_access_policy(**named, policyArn=VIEW)
    assert account.eks.list_associated_access_policies(**named)["associatedAccessPolicies"] == []
    assert refusal(lambda: account.eks.disassociate_access_policy(**named, policyArn=VIEW)) == GONE


@pytest.mark.parametrize(
    ("policy", "scope"),
    [
        ("arn:aws:iam::aws:policy/AdministratorAccess", {"type": "cluster"}),
        (VIEW, {"type": "namespace"}),
        (VIEW, {"type": "cluster", "namespaces": ["clicks"]}),
        (VIEW, {"type": "galaxy"}),
    ],
)
def test_a_policy_that_can_not_be_is_refused(account: Account, entry: dict[str, Any], policy: str, scope: dict[str, Any]) -> None:
    assert refusal(lambda: account.eks.associate_access_policy(**_named(entry), policyArn=policy, accessScope=scope)) == INVALID


def test_nodes_take_no_policies(account: Account, cluster: str) -> None:
    named = {"clusterName": cluster, "principalArn": account.role("ec2.amazonaws.com")}
    account.eks.create_access_entry(**named, type="EC2_LINUX")
    asked = {"policyArn": VIEW, "accessScope": {"type": "cluster"}}
    assert refusal(lambda: account.eks.associate_access_policy(**named, **asked)) == (400, "InvalidRequestException")


def test_whatever_has_an_arn_has_tags(account: Account, cluster: str, entry: dict[str, Any]) -> None:
    arns = [account.eks.describe_cluster(name=cluster)["cluster"]["arn"], entry["accessEntryArn"]]
    for arn in arns:
        account.eks.tag_resource(resourceArn=arn, tags={"a": "b", "c": "d"})
        account.eks.untag_resource(resourceArn=arn, tagKeys=["a"])
        assert account.eks.list_tags_for_resource(resourceArn=arn)["tags"] == {"c": "d"}
    assert refusal(lambda: account.eks.list_tags_for_resource(resourceArn=f"{arns[0]}x")) == (404, "NotFoundException")


def test_a_list_comes_in_pages(account: Account) -> None:
    own = account.cluster()["name"]
    roles = sorted(account.role("ec2.amazonaws.com") for _ in range(5))
    for role in roles:
        account.eks.create_access_entry(clusterName=own, principalArn=role)
    pages = account.eks.get_paginator("list_access_entries").paginate(clusterName=own, PaginationConfig={"PageSize": 2})
    listed = [page["accessEntries"] for page in pages]
    assert [len(page) for page in listed] == [2, 2, 1]
    assert [role for page in listed for role in page] == roles
