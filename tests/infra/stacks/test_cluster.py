from __future__ import annotations

import json
from typing import Any

import pytest

from tests.infra.stacks.network_and_cluster import DEPLOYER, Change, Stack, environment, stacks
from tests.infra.stacks.synthesized import of_cluster

PARTITION = "${data.aws_partition.partition.partition}"
SUFFIX = "${data.aws_partition.partition.dns_suffix}"
ADD_ONS = {"vpc-cni", "coredns", "kube-proxy", "eks-pod-identity-agent", "aws-ebs-csi-driver"}


def _cluster(change: Change | None = None) -> Stack:
    return stacks(environment(change))[1]


def _of_eks(**fields: Any) -> Change:
    return lambda spec: spec["eks"].update(fields)


@pytest.fixture(scope="module")
def made() -> Stack:
    return _cluster()


@pytest.fixture(scope="module")
def eks(made: Stack) -> dict[str, Any]:
    return made.one("aws_eks_cluster", "cluster")


def test_the_cluster_has_the_environments_name_and_version(eks: dict[str, Any]) -> None:
    assert (eks["name"], eks["version"]) == ("penstock-production", "1.35")


def test_the_api_server_is_reached_from_within_the_network_alone_unless_said_otherwise(eks: dict[str, Any]) -> None:
    assert eks["vpc_config"]["endpoint_private_access"] is True
    assert eks["vpc_config"]["endpoint_public_access"] is False
    assert "public_access_cidrs" not in eks["vpc_config"]
    assert len(eks["vpc_config"]["subnet_ids"]) == 3
    assert all("subnetprivate" in subnet for subnet in eks["vpc_config"]["subnet_ids"])


def test_the_api_server_is_opened_to_named_ranges_and_to_no_other() -> None:
    stack = _cluster(_of_eks(publicAccessCidrs=["203.0.113.0/24", "198.51.100.7/32"], privateAccessCidrs=["10.8.0.0/16"]))
    vpc = stack.one("aws_eks_cluster", "cluster")["vpc_config"]
    assert vpc["endpoint_public_access"] is vpc["endpoint_private_access"] is True
    assert vpc["public_access_cidrs"] == ["203.0.113.0/24", "198.51.100.7/32"]
    rules = stack.kind("aws_vpc_security_group_ingress_rule")
    assert {name: rule["cidr_ipv4"] for name, rule in rules.items()} == {
        "api-from-vpc": "10.0.0.0/16",
        "api-from-10-8-0-0-16": "10.8.0.0/16",
    }


def test_a_range_of_ipv6_is_let_in_as_one() -> None:
    stack = _cluster(_of_eks(privateAccessCidrs=["fd00:0:0::/48"]))
    rule = stack.one("aws_vpc_security_group_ingress_rule", "api-from-fd00__-48")
    assert (rule["cidr_ipv6"], "cidr_ipv4" in rule) == ("fd00::/48", False)


def test_the_group_of_the_api_server_is_no_nodes_and_lets_the_vpc_in_over_tls(made: Stack, eks: dict[str, Any]) -> None:
    assert eks["vpc_config"]["security_group_ids"] == ["${aws_security_group.api.id}"]
    (rule,) = made.kind("aws_vpc_security_group_ingress_rule").values()
    assert {key: rule[key] for key in ("security_group_id", "cidr_ipv4", "ip_protocol", "from_port", "to_port")} == {
        "security_group_id": "${aws_security_group.api.id}",
        "cidr_ipv4": "10.0.0.0/16",
        "ip_protocol": "tcp",
        "from_port": 443,
        "to_port": 443,
    }
    assert "vpc_security_group_ids" not in made.one("aws_launch_template", "system-template")


def test_secrets_are_encrypted_with_the_stacks_key(eks: dict[str, Any]) -> None:
    assert eks["encryption_config"] == {"provider": {"key_arn": "${aws_kms_key.key.arn}"}, "resources": ["secrets"]}


def test_who_makes_the_cluster_gets_no_access_by_that(eks: dict[str, Any]) -> None:
    assert eks["access_config"] == {"authentication_mode": "API", "bootstrap_cluster_creator_admin_permissions": False}


def test_the_named_administrators_are_those_and_no_more(made: Stack) -> None:
    id = "admin-111122223333-role-platform-deploy"
    assert made.kind("aws_eks_access_entry") == {
        id: {"cluster_name": "${aws_eks_cluster.cluster.name}", "principal_arn": DEPLOYER, "type": "STANDARD"}
    }
    assert made.kind("aws_eks_access_policy_association") == {
        f"{id}-policy": {
            "access_scope": {"type": "cluster"},
            "cluster_name": "${aws_eks_cluster.cluster.name}",
            "depends_on": [f"aws_eks_access_entry.{id}"],
            "policy_arn": f"arn:{PARTITION}:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy",
            "principal_arn": DEPLOYER,
        }
    }


def test_one_administrator_more_moves_no_other(made: Stack) -> None:
    more = _cluster(_of_eks(admins=["arn:aws:iam::111122223333:user/first", DEPLOYER]))
    assert made.addresses() < more.addresses()


def test_all_logs_of_the_control_plane_go_to_a_group_that_is_there_before(made: Stack, eks: dict[str, Any]) -> None:
    assert sorted(eks["enabled_cluster_log_types"]) == ["api", "audit", "authenticator", "controllerManager", "scheduler"]
    assert "aws_cloudwatch_log_group.logs" in eks["depends_on"]
    assert made.one("aws_cloudwatch_log_group", "logs") == {
        "name": "/aws/eks/penstock-production/cluster",
        "retention_in_days": 365,
        "kms_key_id": "${aws_kms_key.key.arn}",
    }


def test_the_key_is_used_by_cloudwatch_logs_for_the_clusters_group_alone(made: Stack) -> None:
    account, logs = made.statements("aws_kms_key", "key")
    assert account["Principal"] == {"AWS": "arn:${data.aws_partition.key-partition.partition}:iam::111122223333:root"}
    group = f"arn:{PARTITION}:logs:us-east-1:111122223333:log-group:/aws/eks/penstock-production/cluster"
    assert logs["Principal"] == {"Service": f"logs.us-east-1.{SUFFIX}"}
    assert logs["Condition"] == {"ArnEquals": {"kms:EncryptionContext:aws:logs:arn": [group]}}


def test_the_clusters_role_is_taken_by_eks_for_this_cluster_and_uses_the_one_key(made: Stack, eks: dict[str, Any]) -> None:
    assert made.statements("aws_iam_role", "cluster-role", "assume_role_policy") == [
        {
            "Sid": "Trust",
            "Effect": "Allow",
            "Action": ["sts:AssumeRole"],
            "Principal": {"Service": "eks.amazonaws.com"},
            "Condition": of_cluster("production"),
        }
    ]
    assert made.statements("aws_iam_role_policy", "cluster-role") == [
        {
            "Sid": "EncryptSecrets",
            "Effect": "Allow",
            "Action": ["kms:Encrypt", "kms:Decrypt", "kms:ListGrants", "kms:DescribeKey"],
            "Resource": ["${aws_kms_key.key.arn}"],
        }
    ]
    policies = {"aws_iam_role_policy.cluster-role", "aws_iam_role_policy_attachment.cluster-role-AmazonEKSClusterPolicy"}
    assert policies < set(eks["depends_on"])


def _managed(stack: Stack, role: str) -> set[str]:
    attached = stack.kind("aws_iam_role_policy_attachment").values()
    return {one["policy_arn"].rpartition("aws:policy/")[2] for one in attached if one["role"] == f"${{aws_iam_role.{role}.name}}"}


def test_each_role_has_the_managed_policies_of_its_work_and_no_others(made: Stack) -> None:
    assert {role: _managed(made, role) for role in made.kind("aws_iam_role")} == {
        "cluster-role": {"AmazonEKSClusterPolicy"},
        "system-role": {"AmazonEKSWorkerNodePolicy", "AmazonEC2ContainerRegistryPullOnly", "AmazonSSMManagedInstanceCore"},
        "vpc-cni-role": {"AmazonEKS_CNI_Policy"},
        "aws-ebs-csi-driver-role": {"service-role/AmazonEBSCSIDriverPolicy"},
    }
    assert set(made.kind("aws_iam_role_policy")) == {"cluster-role"}


@pytest.mark.parametrize(("add_on", "account"), [("vpc-cni", "aws-node"), ("aws-ebs-csi-driver", "ebs-csi-controller-sa")])
def test_an_add_on_that_calls_aws_has_a_role_of_its_own_by_pod_identity(made: Stack, add_on: str, account: str) -> None:
    assert made.statements("aws_iam_role", f"{add_on}-role", "assume_role_policy") == [
        {
            "Sid": "Trust",
            "Effect": "Allow",
            "Action": ["sts:AssumeRole", "sts:TagSession"],
            "Principal": {"Service": "pods.eks.amazonaws.com"},
            "Condition": of_cluster("production"),
        }
    ]
    identity = made.one("aws_eks_pod_identity_association", f"{add_on}-identity")
    assert (identity["namespace"], identity["service_account"]) == ("kube-system", account)
    assert identity["role_arn"] == f"${{aws_iam_role.{add_on}-role.arn}}"
    assert f"aws_eks_pod_identity_association.{add_on}-identity" in made.one("aws_eks_addon", add_on)["depends_on"]


def test_a_nodes_role_is_taken_by_ec2_alone(made: Stack) -> None:
    (statement,) = made.statements("aws_iam_role", "system-role", "assume_role_policy")
    assert statement["Principal"] == {"Service": f"ec2.{SUFFIX}"}


def test_the_add_ons_are_all_there_in_eks_own_versions(made: Stack) -> None:
    add_ons = made.kind("aws_eks_addon")
    assert {one["addon_name"] for one in add_ons.values()} == ADD_ONS
    assert not any("addon_version" in one for one in add_ons.values())
    assert all(one["resolve_conflicts_on_create"] == "OVERWRITE" for one in add_ons.values())
    assert made.one("aws_eks_cluster", "cluster")["bootstrap_self_managed_addons"] is False


def test_an_add_on_may_be_pinned() -> None:
    stack = _cluster(_of_eks(addOnVersions={"coredns": "v1.12.4-eksbuild.1"}))
    versions = {name: one.get("addon_version") for name, one in stack.kind("aws_eks_addon").items()}
    assert versions == {**dict.fromkeys(ADD_ONS), "coredns": "v1.12.4-eksbuild.1"}


def test_network_policies_are_held(made: Stack) -> None:
    assert json.loads(made.one("aws_eks_addon", "vpc-cni")["configuration_values"]) == {"enableNetworkPolicy": "true"}


def test_what_nodes_need_comes_before_them_and_what_needs_nodes_after(made: Stack) -> None:
    group = made.one("aws_eks_node_group", "system")
    before = {f"aws_eks_addon.{name}" for name in ("vpc-cni", "kube-proxy", "eks-pod-identity-agent")}
    assert before < set(group["depends_on"])
    for name in ("coredns", "aws-ebs-csi-driver"):
        assert "aws_eks_node_group.system" in made.one("aws_eks_addon", name)["depends_on"]


def test_the_system_nodes_are_on_demand_and_keep_other_pods_off(made: Stack) -> None:
    group = made.one("aws_eks_node_group", "system")
    assert group["capacity_type"] == "ON_DEMAND"
    assert group["scaling_config"] == {"desired_size": 2, "max_size": 3, "min_size": 2}
    assert group["taint"] == [{"key": "CriticalAddonsOnly", "value": "true", "effect": "NO_SCHEDULE"}]
    assert group["labels"] == {"penstock.dev/role": "system"}
    assert all("subnetprivate" in subnet for subnet in group["subnet_ids"])
    assert group["version"] == "${aws_eks_cluster.cluster.version}"
    assert "remote_access" not in group


def test_a_pod_can_not_ask_a_system_node_for_its_credentials_and_its_disk_is_encrypted(made: Stack) -> None:
    template = made.one("aws_launch_template", "system-template")
    assert template["metadata_options"] == {
        "http_endpoint": "enabled",
        "http_tokens": "required",
        "http_put_response_hop_limit": 1,
        "instance_metadata_tags": "disabled",
    }
    assert [(one["device_name"], one["ebs"]["encrypted"]) for one in template["block_device_mappings"]] == [("/dev/xvda", "true")]
    assert made.one("aws_eks_node_group", "system")["launch_template"] == {
        "id": "${aws_launch_template.system-template.id}",
        "version": "${aws_launch_template.system-template.latest_version}",
    }


def test_system_nodes_and_their_disks_are_tagged_as_everything_is(made: Stack) -> None:
    tagged = made.one("aws_launch_template", "system-template")["tag_specifications"]
    tags = {"Name": "penstock-production-system", "penstock:environment": "production", "team": "data-platform"}
    assert {one["resource_type"]: one["tags"] for one in tagged} == dict.fromkeys(("instance", "volume", "network-interface"), tags)


@pytest.mark.parametrize(
    ("family", "type", "image", "devices"),
    [
        ("AL2023", "m7i.large", "AL2023_x86_64_STANDARD", ["/dev/xvda"]),
        ("AL2023", "m7g.large", "AL2023_ARM_64_STANDARD", ["/dev/xvda"]),
        ("Bottlerocket", "c6gn.large", "BOTTLEROCKET_ARM_64", ["/dev/xvda", "/dev/xvdb"]),
        ("Bottlerocket", "m6i.large", "BOTTLEROCKET_x86_64", ["/dev/xvda", "/dev/xvdb"]),
    ],
)
def test_the_image_fits_the_instance_types(family: str, type: str, image: str, devices: list[str]) -> None:
    def change(spec: dict[str, Any]) -> None:
        spec["nodes"]["amiFamily"] = family
        spec["eks"]["systemNodes"] = {"instanceTypes": [type]}

    stack = _cluster(change)
    assert stack.one("aws_eks_node_group", "system")["ami_type"] == image
    volumes = stack.one("aws_launch_template", "system-template")["block_device_mappings"]
    assert [volume["device_name"] for volume in volumes] == devices
    assert {volume["ebs"]["encrypted"] for volume in volumes} == {"true"}


def test_nodes_get_the_clusters_own_security_group(made: Stack) -> None:
    assert made.outputs()["node_security_group_ids"] == ["${aws_eks_cluster.cluster.vpc_config[0].cluster_security_group_id}"]


def test_the_clusters_tokens_are_known_to_iam(made: Stack) -> None:
    assert made.one("aws_iam_openid_connect_provider", "oidc") == {
        "client_id_list": ["sts.amazonaws.com"],
        "url": "${aws_eks_cluster.cluster.identity[0].oidc[0].issuer}",
    }


@pytest.mark.parametrize(("extended", "support"), [(False, "STANDARD"), (True, "EXTENDED")])
def test_what_eks_does_at_the_end_of_support_is_what_the_environment_says(extended: bool, support: str) -> None:
    stack = _cluster(_of_eks(extendedSupport=extended))
    assert stack.one("aws_eks_cluster", "cluster")["upgrade_policy"] == {"support_type": support}


def test_where_it_is_protected_the_key_is_kept(made: Stack) -> None:
    assert made.one("aws_kms_key", "key")["lifecycle"] == {"prevent_destroy": True}
    stack = _cluster(lambda spec: spec.update(protect=False))
    assert "lifecycle" not in stack.one("aws_kms_key", "key")


def test_the_other_stacks_get_what_they_need_to_reach_the_cluster(made: Stack) -> None:
    assert made.outputs() == {
        "cluster_name": "${aws_eks_cluster.cluster.name}",
        "cluster_arn": "${aws_eks_cluster.cluster.arn}",
        "cluster_endpoint": "${aws_eks_cluster.cluster.endpoint}",
        "cluster_ca": "${aws_eks_cluster.cluster.certificate_authority[0].data}",
        "node_security_group_ids": ["${aws_eks_cluster.cluster.vpc_config[0].cluster_security_group_id}"],
        "oidc_issuer": "${aws_eks_cluster.cluster.identity[0].oidc[0].issuer}",
        "oidc_provider_arn": "${aws_iam_openid_connect_provider.oidc.arn}",
        "configure_kubectl": "aws eks update-kubeconfig --region us-east-1 --name penstock-production",
    }
