from __future__ import annotations

from typing import Any

import pytest

from tests.scripts.emulation.conftest import Account, name, refusal

pytestmark = pytest.mark.emulated

INVALID = (400, "InvalidParameterException")


def test_a_cluster_is_described_as_it_was_asked_for(account: Account) -> None:
    asked = {
        "accessConfig": {"authenticationMode": "API", "bootstrapClusterCreatorAdminPermissions": False},
        "encryptionConfig": [{"resources": ["secrets"], "provider": {"keyArn": account.key}}],
        "logging": {"clusterLogging": [{"types": ["api", "audit"], "enabled": True}]},
        "upgradePolicy": {"supportType": "STANDARD"},
        "tags": {"a": "b"},
    }
    made = account.cluster(**asked)
    described = account.eks.describe_cluster(name=made["name"])["cluster"]
    assert described == made
    assert described["status"] == "ACTIVE"
    assert {key: described[key] for key in ("accessConfig", "encryptionConfig", "upgradePolicy", "tags")} == {
        key: asked[key] for key in ("accessConfig", "encryptionConfig", "upgradePolicy", "tags")
    }
    assert described["logging"]["clusterLogging"][0] == {"types": ["api", "audit"], "enabled": True}
    assert described["identity"]["oidc"]["issuer"].startswith("https://oidc.eks.us-east-1.amazonaws.com/id/")


def test_two_clusters_have_another_issuer_and_endpoint_each(account: Account) -> None:
    one, other = account.cluster(), account.cluster()
    assert one["identity"] != other["identity"]
    assert one["endpoint"] != other["endpoint"]


def test_the_cluster_security_group_is_one_of_the_vpcs_and_goes_with_the_cluster(account: Account) -> None:
    made = account.cluster()
    network = made["resourcesVpcConfig"]
    assert network["vpcId"] == account.vpc
    group = network["clusterSecurityGroupId"]
    (described,) = account.ec2.describe_security_groups(GroupIds=[group])["SecurityGroups"]
    assert described["VpcId"] == account.vpc
    assert {"Key": f"kubernetes.io/cluster/{made['name']}", "Value": "owned"} in described["Tags"]
    assert described["IpPermissions"][0]["UserIdGroupPairs"][0]["GroupId"] == group
    account.eks.delete_cluster(name=made["name"])
    assert refusal(lambda: account.ec2.describe_security_groups(GroupIds=[group])) == (400, "InvalidGroup.NotFound")


@pytest.mark.parametrize(
    "asked",
    [
        {"version": "1.19"},
        {"roleArn": "arn:aws:iam::123456780000:role/nobody"},
        {"resourcesVpcConfig": {"subnetIds": ["subnet-0", "subnet-1"]}},
        {"resourcesVpcConfig": {"subnetIds": "subnet-0"}},
        {"encryptionConfig": [{"resources": ["secrets"], "provider": {"keyArn": "arn:aws:kms:us-east-1:123456780000:key/none"}}]},
        {"kubernetesNetworkConfig": {"serviceIpv4Cidr": "10.0.0.0/16"}},
        {"accessConfig": {"authenticationMode": "NOBODY"}},
        {"logging": {"clusterLogging": [{"types": ["everything"], "enabled": True}]}},
        {"name": "-starts-with-a-hyphen"},
        {"name": "x" * 101},
    ],
    ids=lambda asked: "-".join(asked),
)
def test_a_cluster_that_can_not_be_is_refused(account: Account, asked: dict[str, Any]) -> None:
    assert refusal(lambda: account.cluster(**asked)) == INVALID


def test_subnets_of_one_zone_are_refused(account: Account) -> None:
    alone = {"subnetIds": account.subnets[:1]}
    assert refusal(lambda: account.cluster(resourcesVpcConfig=alone)) == INVALID


def test_a_role_that_does_not_trust_eks_is_refused(account: Account) -> None:
    assert refusal(lambda: account.cluster(roleArn=account.node_role)) == INVALID


def test_a_name_is_used_once(account: Account) -> None:
    taken = account.cluster()["name"]
    assert refusal(lambda: account.cluster(name=taken)) == (409, "ResourceInUseException")


def test_what_is_not_there_is_not_found(account: Account) -> None:
    gone = (404, "ResourceNotFoundException")
    assert refusal(lambda: account.eks.describe_cluster(name="nobody")) == gone
    assert refusal(lambda: account.eks.delete_cluster(name="nobody")) == gone


def test_a_change_is_done_and_its_update_described(account: Account) -> None:
    made = account.cluster(resourcesVpcConfig={"subnetIds": account.subnets, "endpointPrivateAccess": True})
    wanted = {"endpointPublicAccess": False, "endpointPrivateAccess": True}
    update = account.eks.update_cluster_config(name=made["name"], resourcesVpcConfig=wanted)["update"]
    assert account.eks.describe_update(name=made["name"], updateId=update["id"])["update"]["status"] == "Successful"
    network = account.eks.describe_cluster(name=made["name"])["cluster"]["resourcesVpcConfig"]
    assert {key: network[key] for key in wanted} == wanted
    assert network["publicAccessCidrs"] == []
    assert network["subnetIds"] == account.subnets


def test_a_change_to_what_is_there_already_is_refused(account: Account) -> None:
    made = account.cluster()
    same = {"authenticationMode": "API"}
    assert refusal(lambda: account.eks.update_cluster_config(name=made["name"], accessConfig=same)) == INVALID


def test_access_goes_to_the_api_and_never_back(account: Account) -> None:
    made = account.cluster(accessConfig={"authenticationMode": "CONFIG_MAP"})

    def change(mode: str) -> Any:
        return account.eks.update_cluster_config(name=made["name"], accessConfig={"authenticationMode": mode})

    change("API_AND_CONFIG_MAP")
    assert refusal(lambda: change("CONFIG_MAP")) == INVALID


def test_a_public_endpoint_is_opened_to_public_addresses_only(account: Account) -> None:
    network = {"subnetIds": account.subnets, "publicAccessCidrs": ["10.0.0.0/8"]}
    assert refusal(lambda: account.cluster(resourcesVpcConfig=network)) == INVALID


def test_kubernetes_goes_up_one_minor_version_at_a_time(account: Account) -> None:
    made = account.cluster(version="1.33")
    assert refusal(lambda: account.eks.update_cluster_version(name=made["name"], version="1.35")) == INVALID
    account.eks.update_cluster_version(name=made["name"], version="1.34")
    assert account.eks.describe_cluster(name=made["name"])["cluster"]["version"] == "1.34"


def test_a_protected_cluster_is_not_deleted(account: Account) -> None:
    made = account.cluster(deletionProtection=True)
    assert refusal(lambda: account.eks.delete_cluster(name=made["name"])) == (400, "InvalidRequestException")


def test_an_operation_that_is_not_emulated_says_so(account: Account) -> None:
    assert refusal(lambda: account.eks.list_fargate_profiles(clusterName=name("any"))) == (501, "NotImplemented")
