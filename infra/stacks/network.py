"""The network stack: a new VPC, or the ids of an existing one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from constructs import Construct

from penstock.infra.aws_bindings import aws
from penstock.infra.constructs.aws_stack import AwsStack
from penstock.infra.constructs.encryption_key import EncryptionKey
from penstock.infra.constructs.role import Role
from penstock.infra.environment import Environment
from penstock.infra.log_encryption import log_group_arn, logs_service
from penstock.infra.parts.network import DEFAULT_RETENTION_DAYS, ExistingNetwork
from penstock.infra.policies import allow, trust
from penstock.infra.private_network import endpoint_services

STACK = "network"
# By these the AWS Load Balancer Controller discovers the subnets of a load balancer. Source: its documentation, "Subnet Discovery".
INTERNAL_LOAD_BALANCER_TAG = "kubernetes.io/role/internal-elb"
PUBLIC_LOAD_BALANCER_TAG = "kubernetes.io/role/elb"
ANYWHERE = "0.0.0.0/0"
HTTPS = 443
FLOW_LOGS_SERVICE = "vpc-flow-logs.amazonaws.com"
# Source: Amazon VPC User Guide, "IAM role for publishing flow logs to CloudWatch Logs"; the log group already exists.
FLOW_LOGS_ACTIONS = ("logs:CreateLogStream", "logs:PutLogEvents", "logs:DescribeLogGroups", "logs:DescribeLogStreams")
# One record per connection and 10 minutes, the longest interval, costs a tenth of one per minute.
FLOW_LOGS_INTERVAL_S = 600


@dataclass(frozen=True)
class NetworkOutputs:
    """Outputs for other stacks.

    Args:
        vpc_id: the VPC.
        vpc_cidr: its addresses.
        private_subnet_ids: one per zone, in the order of the zones.
        public_subnet_ids: one per zone; empty without a NAT gateway.
    """

    vpc_id: str
    vpc_cidr: str
    private_subnet_ids: tuple[str, ...]
    public_subnet_ids: tuple[str, ...]


class NetworkStack(AwsStack):
    """A VPC over the environment's zones, closed to the Internet except for its NAT gateways.

    Args:
        scope: the app.
        environment: the environment of the stack, with a network.
    """

    def __init__(self, scope: Construct, environment: Environment) -> None:
        super().__init__(scope, STACK, environment)
        network = environment.spec.network
        if network is None:
            raise ValueError(f"{environment.name} has no network")
        self._network = network
        self.outputs = self._made() if network.existing is None else _given(network.existing)
        self.export(self.outputs)

    def _made(self) -> NetworkOutputs:
        name, cidr = self.environment.prefix, self._network.addresses
        vpc = aws.vpc.Vpc(self, "vpc", cidr_block=cidr, enable_dns_support=True, enable_dns_hostnames=True, tags={"Name": name})
        self._vpc_id: str = vpc.id
        self._close_default_group()
        plan = self._network.subnets
        private = self._subnets("private", plan.private, {INTERNAL_LOAD_BALANCER_TAG: "1"})
        public = self._subnets("public", plan.public, {PUBLIC_LOAD_BALANCER_TAG: "1"})
        tables = self._private_routes(private, self._nat_gateways(public))
        self._endpoints(private, tables)
        self._flow_logs()
        return NetworkOutputs(vpc_id=vpc.id, vpc_cidr=cidr, private_subnet_ids=private, public_subnet_ids=public)

    def _close_default_group(self) -> None:
        """Removes all rules of the VPC's default security group, which applies to resources without an explicit group."""
        tags = {"Name": f"{self.environment.prefix}-default-closed"}
        module = aws.default_security_group
        module.DefaultSecurityGroup(self, "default-closed", vpc_id=self._vpc_id, ingress=[], egress=[], tags=tags)

    def _subnets(self, side: str, cidrs: Sequence[str], tags: dict[str, str]) -> tuple[str, ...]:
        """The ids of the subnets, one per zone for which there are addresses; public addresses are not assigned automatically."""
        zones = zip(self._network.zones, cidrs, strict=False)
        return tuple(self._subnet(f"{side}-{zone}", zone, cidr, tags) for zone, cidr in zones)

    def _subnet(self, id: str, zone: str, cidr: str, tags: dict[str, str]) -> str:
        subnet = aws.subnet.Subnet(
            self,
            id,
            vpc_id=self._vpc_id,
            availability_zone=zone,
            cidr_block=cidr,
            map_public_ip_on_launch=False,
            tags={"Name": f"{self.environment.prefix}-{id}", **tags},
        )
        subnet_id: str = subnet.id
        return subnet_id

    def _nat_gateways(self, public: Sequence[str]) -> list[str]:
        """The public side: the Internet gateway and the NAT gateways behind it; nothing if there is no public subnet."""
        if not public:
            return []
        internet = aws.internet_gateway.InternetGateway(self, "internet", vpc_id=self._vpc_id, tags={"Name": self.environment.prefix})
        table = self._route_table("public")
        aws.route.Route(self, "public-route", route_table_id=table, destination_cidr_block=ANYWHERE, gateway_id=internet.id)
        for zone, subnet in zip(self._network.zones, public, strict=True):
            self._associate(f"public-{zone}", subnet, table)
        zones = self._network.zones[: self._network.nat_gateways]
        return [self._nat_gateway(f"nat-{zone}", subnet, internet) for zone, subnet in zip(zones, public, strict=False)]

    def _nat_gateway(self, id: str, subnet: str, internet: Any) -> str:
        tags = {"Name": f"{self.environment.prefix}-{id}"}
        address = aws.eip.Eip(self, f"{id}-address", domain="vpc", tags=tags, depends_on=[internet])
        module = aws.nat_gateway
        gateway = module.NatGateway(self, id, allocation_id=address.id, subnet_id=subnet, tags=tags, depends_on=[internet])
        gateway_id: str = gateway.id
        return gateway_id

    def _private_routes(self, private: Sequence[str], gateways: Sequence[str]) -> list[str]:
        """One route table per zone: it routes through its own zone's gateway, or another's if the zone has none."""
        tables = []
        for index, (zone, subnet) in enumerate(zip(self._network.zones, private, strict=True)):
            id = f"private-{zone}"
            table = self._route_table(id)
            tables.append(table)
            self._associate(id, subnet, table)
            if gateways:
                gateway = gateways[index % len(gateways)]
                aws.route.Route(self, f"{id}-route", route_table_id=table, destination_cidr_block=ANYWHERE, nat_gateway_id=gateway)
        return tables

    def _route_table(self, id: str) -> str:
        tags = {"Name": f"{self.environment.prefix}-{id}"}
        table_id: str = aws.route_table.RouteTable(self, f"{id}-routes", vpc_id=self._vpc_id, tags=tags).id
        return table_id

    def _associate(self, id: str, subnet: str, table: str) -> None:
        module = aws.route_table_association
        module.RouteTableAssociation(self, f"{id}-association", subnet_id=subnet, route_table_id=table)

    def _endpoints(self, subnets: Sequence[str], tables: Sequence[str]) -> None:
        """Access to AWS without the Internet: S3 through the route tables, free of charge, other services through an address per zone."""
        self._endpoint("s3", vpc_endpoint_type="Gateway", route_table_ids=list(tables))
        services = endpoint_services(self.environment)
        groups = [self._endpoints_group()] if services else []
        within = {"vpc_endpoint_type": "Interface", "subnet_ids": list(subnets), "security_group_ids": groups, "private_dns_enabled": True}
        for service in services:
            self._endpoint(service, **within)

    def _endpoint(self, service: str, **rest: Any) -> None:
        id = f"{service.replace('.', '-')}-endpoint"
        aws.vpc_endpoint.VpcEndpoint(
            self,
            id,
            vpc_id=self._vpc_id,
            service_name=f"com.amazonaws.{self.environment.spec.region}.{service}",
            tags={"Name": f"{self.environment.prefix}-{id}"},
            **rest,
        )

    def _endpoints_group(self) -> str:
        """Clients of the endpoints: the VPC's own addresses, over TLS. No outgoing connections."""
        name = f"{self.environment.prefix}-endpoints"
        group = aws.security_group.SecurityGroup(
            self,
            "endpoints",
            name=name,
            description="Interface endpoints of AWS services",
            vpc_id=self._vpc_id,
            tags={"Name": name},
        )
        aws.vpc_security_group_ingress_rule.VpcSecurityGroupIngressRule(
            self,
            "endpoints-from-vpc",
            security_group_id=group.id,
            description="TLS from the VPC",
            cidr_ipv4=self._network.addresses,
            ip_protocol="tcp",
            from_port=HTTPS,
            to_port=HTTPS,
        )
        group_id: str = group.id
        return group_id

    def _flow_logs(self) -> None:
        """Records every accepted or rejected connection, for the analysis of incidents."""
        partition = aws.data_aws_partition.DataAwsPartition(self, "partition")
        name = f"/{self.environment.prefix}/vpc-flow-logs"
        arn = log_group_arn(self.environment, partition.partition, name)
        service = logs_service(self.environment, partition.dns_suffix, arn)
        key = EncryptionKey(self, "key", self.environment, description=f"VPC flow logs of {self.environment.prefix}", services=[service])
        days = self._network.flow_log_retention_days or DEFAULT_RETENTION_DAYS
        module = aws.cloudwatch_log_group
        group = module.CloudwatchLogGroup(self, "flow-logs", name=name, retention_in_days=days, kms_key_id=key.arn)
        aws.flow_log.FlowLog(
            self,
            "flow-log",
            vpc_id=self._vpc_id,
            traffic_type="ALL",
            log_destination_type="cloud-watch-logs",
            log_destination=group.arn,
            iam_role_arn=self._flow_logs_role(partition.partition, arn).arn,
            max_aggregation_interval=FLOW_LOGS_INTERVAL_S,
            tags={"Name": self.environment.prefix},
        )

    def _flow_logs_role(self, partition: str, group_arn: str) -> Role:
        """For flow logs of this account, to this log group only."""
        spec = self.environment.spec
        logs_of_ours = f"arn:{partition}:ec2:{spec.region}:{spec.account}:vpc-flow-log/*"
        condition = {"StringEquals": {"aws:SourceAccount": spec.account}, "ArnLike": {"aws:SourceArn": logs_of_ours}}
        write = allow("WriteFlowLogs", FLOW_LOGS_ACTIONS, [group_arn, f"{group_arn}:*"])
        name = f"{self.environment.prefix}-flow-logs"
        return Role(self, "flow-logs-role", name=name, trusted=trust(FLOW_LOGS_SERVICE, condition), statements=[write])


def _given(existing: ExistingNetwork) -> NetworkOutputs:
    """An existing VPC: all of it belongs to its owners, and shared subnets can't even be tagged."""
    return NetworkOutputs(
        vpc_id=existing.vpc_id,
        vpc_cidr=existing.cidr,
        private_subnet_ids=tuple(existing.private_subnet_ids),
        public_subnet_ids=tuple(existing.public_subnet_ids),
    )
