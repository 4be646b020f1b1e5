from __future__ import annotations

import re
from typing import Any

import pytest

from penstock.infra.environment_file import load
from penstock.infra.parts.network import INTERFACE_ENDPOINTS, NEEDED_WITHOUT_NAT
from tests.infra.stacks.network_and_cluster import Change, Stack, environment, stacks

ZONES = ("us-east-1a", "us-east-1b", "us-east-1c")
GROUP = "arn:${data.aws_partition.partition.partition}:logs:us-east-1:111122223333:log-group:/penstock-production/vpc-flow-logs"


def _network(change: Change | None = None) -> Stack:
    return stacks(environment(change))[0]


def _of_network(**fields: Any) -> Change:
    return lambda spec: spec["network"].update(fields)


@pytest.fixture(scope="module")
def made() -> Stack:
    return _network()


def test_each_zone_has_a_private_subnet_with_room_for_pods_and_a_small_public_one(made: Stack) -> None:
    subnets = made.kind("aws_subnet")
    assert {name: subnet["cidr_block"] for name, subnet in subnets.items()} == {
        "private-us-east-1a": "10.0.0.0/19",
        "private-us-east-1b": "10.0.32.0/19",
        "private-us-east-1c": "10.0.64.0/19",
        "public-us-east-1a": "10.0.224.0/22",
        "public-us-east-1b": "10.0.228.0/22",
        "public-us-east-1c": "10.0.232.0/22",
    }
    assert all(subnet["availability_zone"] == name.partition("-")[2] for name, subnet in subnets.items())
    assert made.one("aws_vpc", "vpc")["cidr_block"] == "10.0.0.0/16"


def test_subnets_given_by_hand_are_taken_as_they_are() -> None:
    private = ["10.0.0.0/18", "10.0.64.0/18", "10.0.128.0/18"]
    public = ["10.0.192.0/24", "10.0.193.0/24", "10.0.194.0/24"]
    stack = _network(_of_network(privateSubnets=private, publicSubnets=public))
    assert [subnet["cidr_block"] for subnet in stack.kind("aws_subnet").values()] == [*private, *public]


def test_nothing_gets_a_public_address_by_being_in_a_subnet(made: Stack) -> None:
    assert all(subnet["map_public_ip_on_launch"] is False for subnet in made.kind("aws_subnet").values())


def test_karpenter_finds_the_private_subnets_and_no_public_one(made: Stack) -> None:
    for name, subnet in made.kind("aws_subnet").items():
        tags = {key: value for key, value in subnet["tags"].items() if key != "Name"}
        if name.startswith("private"):
            assert tags == {"kubernetes.io/role/internal-elb": "1"}
        else:
            assert tags == {"kubernetes.io/role/elb": "1"}


def _exits(stack: Stack) -> dict[str, str]:
    """Zone -> the target of its private subnet's default route, by the actual route table associations."""
    tables = {f"${{aws_route_table.{name}.id}}" for name in stack.kind("aws_route_table")}
    exits = {}
    for association in stack.kind("aws_route_table_association").values():
        assert association["route_table_id"] in tables
        zone = re.fullmatch(r"\$\{aws_subnet\.private-(.*)\.id\}", association["subnet_id"])
        routes = [route for route in stack.kind("aws_route").values() if route["route_table_id"] == association["route_table_id"]]
        for route in routes if zone else ():
            assert route["destination_cidr_block"] == "0.0.0.0/0"
            exits[str(zone and zone[1])] = route["nat_gateway_id"]
    return exits


def test_each_zone_goes_out_by_its_own_nat_gateway(made: Stack) -> None:
    assert _exits(made) == {zone: f"${{aws_nat_gateway.nat-{zone}.id}}" for zone in ZONES}
    for zone in ZONES:
        gateway = made.one("aws_nat_gateway", f"nat-{zone}")
        assert gateway["subnet_id"] == f"${{aws_subnet.public-{zone}.id}}"
        assert gateway["allocation_id"] == f"${{aws_eip.nat-{zone}-address.id}}"


def test_with_one_nat_gateway_all_zones_go_out_by_it() -> None:
    stack = _network(_of_network(natGateways=1))
    assert _exits(stack) == dict.fromkeys(ZONES, "${aws_nat_gateway.nat-us-east-1a.id}")
    assert len(stack.kind("aws_eip")) == 1


def test_without_a_nat_gateway_there_is_no_way_to_the_internet_and_the_endpoints_that_nodes_need() -> None:
    stack = _network(_of_network(natGateways=0))
    for kind in ("aws_internet_gateway", "aws_nat_gateway", "aws_eip", "aws_route"):
        assert stack.kind(kind) == {}
    assert all(name.startswith("private") for name in stack.kind("aws_subnet"))
    services = {endpoint["service_name"].removeprefix("com.amazonaws.us-east-1.") for endpoint in stack.kind("aws_vpc_endpoint").values()}
    assert services == {"s3", *INTERFACE_ENDPOINTS, *NEEDED_WITHOUT_NAT}
    assert stack.outputs()["public_subnet_ids"] == []


def test_public_subnets_alone_have_a_route_from_the_internet(made: Stack) -> None:
    direct = [name for name, route in made.kind("aws_route").items() if "gateway_id" in route]
    assert direct == ["public-route"]
    table = made.one("aws_route", "public-route")["route_table_id"]
    associated = {name for name, one in made.kind("aws_route_table_association").items() if one["route_table_id"] == table}
    assert associated == {f"public-{zone}-association" for zone in ZONES}


def test_s3_is_reached_through_every_private_table(made: Stack) -> None:
    endpoint = made.one("aws_vpc_endpoint", "s3-endpoint")
    assert endpoint["vpc_endpoint_type"] == "Gateway"
    assert endpoint["service_name"] == "com.amazonaws.us-east-1.s3"
    assert endpoint["route_table_ids"] == [f"${{aws_route_table.private-{zone}-routes.id}}" for zone in ZONES]


def test_other_services_have_an_address_in_each_zone_and_their_own_name(made: Stack) -> None:
    interfaces = {name: one for name, one in made.kind("aws_vpc_endpoint").items() if name != "s3-endpoint"}
    services = {endpoint["service_name"] for endpoint in interfaces.values()}
    assert services == {f"com.amazonaws.us-east-1.{service}" for service in INTERFACE_ENDPOINTS}
    for endpoint in interfaces.values():
        assert endpoint["vpc_endpoint_type"] == "Interface"
        assert endpoint["private_dns_enabled"] is True
        assert endpoint["subnet_ids"] == [f"${{aws_subnet.private-{zone}.id}}" for zone in ZONES]
        assert endpoint["security_group_ids"] == ["${aws_security_group.endpoints.id}"]
    vpc = made.one("aws_vpc", "vpc")
    assert vpc["enable_dns_support"] is vpc["enable_dns_hostnames"] is True


def test_endpoints_are_called_by_the_vpc_over_tls_and_have_no_outgoing_rule(made: Stack) -> None:
    (rule,) = made.kind("aws_vpc_security_group_ingress_rule").values()
    assert {key: rule[key] for key in ("security_group_id", "cidr_ipv4", "ip_protocol", "from_port", "to_port")} == {
        "security_group_id": "${aws_security_group.endpoints.id}",
        "cidr_ipv4": "10.0.0.0/16",
        "ip_protocol": "tcp",
        "from_port": 443,
        "to_port": 443,
    }
    assert made.kind("aws_vpc_security_group_egress_rule") == {}
    assert not {"ingress", "egress"} & set(made.one("aws_security_group", "endpoints"))


def test_a_vpc_without_interface_endpoints_has_no_group_for_them() -> None:
    stack = _network(_of_network(interfaceEndpoints=[]))
    assert list(stack.kind("aws_vpc_endpoint")) == ["s3-endpoint"]
    assert stack.kind("aws_security_group") == {}


def test_the_default_group_lets_nothing_through(made: Stack) -> None:
    group = made.one("aws_default_security_group", "default-closed")
    assert group["vpc_id"] == "${aws_vpc.vpc.id}"
    assert group["ingress"] == group["egress"] == []


def test_every_connection_is_logged_encrypted_for_a_year_unless_said_otherwise(made: Stack) -> None:
    log = made.one("aws_flow_log", "flow-log")
    assert {key: log[key] for key in ("vpc_id", "traffic_type", "log_destination", "log_destination_type", "iam_role_arn")} == {
        "vpc_id": "${aws_vpc.vpc.id}",
        "traffic_type": "ALL",
        "log_destination": "${aws_cloudwatch_log_group.flow-logs.arn}",
        "log_destination_type": "cloud-watch-logs",
        "iam_role_arn": "${aws_iam_role.flow-logs-role.arn}",
    }
    assert made.one("aws_cloudwatch_log_group", "flow-logs") == {
        "name": "/penstock-production/vpc-flow-logs",
        "retention_in_days": 365,
        "kms_key_id": "${aws_kms_key.key.arn}",
    }
    stack = _network(_of_network(flowLogRetentionDays=30))
    assert stack.one("aws_cloudwatch_log_group", "flow-logs")["retention_in_days"] == 30


def test_the_flow_logs_role_is_taken_by_flow_logs_of_this_account_alone_and_writes_to_one_group(made: Stack) -> None:
    assert made.statements("aws_iam_role", "flow-logs-role", "assume_role_policy") == [
        {
            "Sid": "Trust",
            "Effect": "Allow",
            "Action": ["sts:AssumeRole"],
            "Principal": {"Service": "vpc-flow-logs.amazonaws.com"},
            "Condition": {
                "StringEquals": {"aws:SourceAccount": "111122223333"},
                "ArnLike": {"aws:SourceArn": "arn:${data.aws_partition.partition.partition}:ec2:us-east-1:111122223333:vpc-flow-log/*"},
            },
        }
    ]
    assert made.statements("aws_iam_role_policy", "flow-logs-role") == [
        {
            "Sid": "WriteFlowLogs",
            "Effect": "Allow",
            "Action": ["logs:CreateLogStream", "logs:PutLogEvents", "logs:DescribeLogGroups", "logs:DescribeLogStreams"],
            "Resource": [GROUP, f"{GROUP}:*"],
        }
    ]
    assert made.kind("aws_iam_role_policy_attachment") == {}


def test_the_key_is_used_by_cloudwatch_logs_for_the_one_group(made: Stack) -> None:
    account, logs = made.statements("aws_kms_key", "key")
    assert account["Principal"] == {"AWS": "arn:${data.aws_partition.key-partition.partition}:iam::111122223333:root"}
    assert logs["Principal"] == {"Service": "logs.us-east-1.${data.aws_partition.partition.dns_suffix}"}
    assert logs["Condition"] == {"ArnEquals": {"kms:EncryptionContext:aws:logs:arn": [GROUP]}}
    assert "kms:*" not in logs["Action"]


def test_the_other_stacks_get_the_vpc_and_its_subnets(made: Stack) -> None:
    assert made.outputs() == {
        "vpc_id": "${aws_vpc.vpc.id}",
        "vpc_cidr": "10.0.0.0/16",
        "private_subnet_ids": [f"${{aws_subnet.private-{zone}.id}}" for zone in ZONES],
        "public_subnet_ids": [f"${{aws_subnet.public-{zone}.id}}" for zone in ZONES],
    }


def test_a_zone_that_is_added_moves_nothing_that_is_there(made: Stack) -> None:
    """A subnet whose CIDR changes is replaced, with all its nodes."""
    two = _network(_of_network(zones=["us-east-1a", "us-east-1b"], natGateways=2))
    assert two.addresses() < made.addresses()
    for kind in ("aws_subnet", "aws_nat_gateway", "aws_eip", "aws_route", "aws_route_table", "aws_route_table_association"):
        for name, resource in two.kind(kind).items():
            assert made.one(kind, name) == resource


def test_of_an_existing_vpc_nothing_is_changed_nor_tagged() -> None:
    """An account can't tag the subnets that another one shares with it."""
    private = [f"subnet-{n:017x}" for n in range(3)]

    def change(spec: dict[str, Any]) -> None:
        spec["network"]["existing"] = {"vpcId": "vpc-0123456789abcdef0", "cidr": "172.20.0.0/16", "privateSubnetIds": private}

    network, cluster = stacks(environment(change))
    assert network.addresses() == set()
    assert not [address for address in cluster.addresses() if address.startswith("aws_ec2_tag.")]
    assert network.outputs() == {
        "vpc_id": "vpc-0123456789abcdef0",
        "vpc_cidr": "172.20.0.0/16",
        "private_subnet_ids": private,
        "public_subnet_ids": [],
    }
    assert cluster.one("aws_eks_cluster", "cluster")["vpc_config"]["subnet_ids"] == private


def test_the_shipped_production_has_a_nat_gateway_in_each_zone() -> None:
    network = load("production").spec.network
    assert network is not None
    assert network.nat_gateways == len(network.zones) == 3
