"""An OpenSearch domain in the VPC for the jobs' logs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cdktf import TerraformResourceLifecycle
from constructs import Construct

from penstock.infra.aws_bindings import aws
from penstock.infra.environment import Environment
from penstock.infra.errors import NameTooLong, UnevenDomain
from penstock.infra.log_encryption import log_group_arn
from penstock.infra.parts.observability import OpenSearchDomain
from penstock.infra.policies import allow_service, document

HTTPS = 443
# Source: OpenSearch Service API reference, CreateDomain: DomainName of 3 to 28 characters.
MAX_NAME = 28
# TLS 1.2 and newer with perfect forward secrecy. Source: OpenSearch Service API reference, DomainEndpointOptions.
TLS_POLICY = "Policy-Min-TLS-1-2-PFS-2023-10"
LOGS_SERVICE = "es.amazonaws.com"
# Nodes that keep the cluster state and hold no data; a quorum of three survives the loss of one. Source: OpenSearch Service Developer
# Guide,
# "Dedicated master nodes".
MASTERS, MASTER_TYPE = 3, "m7g.medium.search"
MOST_ZONES = 3
# Source: Amazon OpenSearch Service Developer Guide, "Configuring a multi-AZ domain": two zones require an even number of data nodes.
EVEN_ZONES = 2
# Source: Amazon OpenSearch Service Developer Guide, "Using service-linked roles to create VPC domains".
SERVICE_ROLE = "opensearchservice.amazonaws.com"


class LogSearch(Construct):
    """The domain, its security group and its own log group.

    IAM policies alone decide who may use it: its access policy delegates to the account, and its security group admits the cluster's
    nodes.

    Args:
        scope: the stack.
        id: the logical id of its resources.
        environment: the environment of the stack.
        domain: its size.
        key_arn: the KMS key's ARN.
        vpc_id: the VPC.
        subnet_ids: one per zone; the domain uses as many as it needs.
        client_security_group_ids: security groups of the clients that write to it.

    Raises:
        NameTooLong: INF-060.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        environment: Environment,
        domain: OpenSearchDomain,
        key_arn: str,
        vpc_id: str,
        subnet_ids: Sequence[str],
        client_security_group_ids: Sequence[str],
    ) -> None:
        super().__init__(scope, id)
        name = _name(environment)
        module = aws.opensearch_domain
        zones = min(MOST_ZONES, domain.instances, len(subnet_ids))
        if zones == EVEN_ZONES and domain.instances % EVEN_ZONES:
            need = "an even number of instances for a domain in two zones"
            fault = UnevenDomain(given=str(domain.instances), need=need, fix=f"instances: {domain.instances + 1}")
            raise environment.locate(fault, "spec", "observability", "openSearch", "domain", "instances")
        security_group = self._security_group(environment, vpc_id, client_security_group_ids)
        log_group, first = self._log_group(environment, key_arn)
        made = module.OpensearchDomain(
            self,
            "domain",
            domain_name=name,
            engine_version=f"OpenSearch_{domain.version}",
            cluster_config=_cluster(domain, zones),
            ebs_options=module.OpensearchDomainEbsOptions(ebs_enabled=True, volume_type="gp3", volume_size=domain.storage_gib),
            encrypt_at_rest=module.OpensearchDomainEncryptAtRest(enabled=True, kms_key_id=key_arn),
            node_to_node_encryption=module.OpensearchDomainNodeToNodeEncryption(enabled=True),
            domain_endpoint_options=module.OpensearchDomainDomainEndpointOptions(enforce_https=True, tls_security_policy=TLS_POLICY),
            vpc_options=module.OpensearchDomainVpcOptions(subnet_ids=list(subnet_ids[:zones]), security_group_ids=[security_group]),
            log_publishing_options=[
                module.OpensearchDomainLogPublishingOptions(log_type="ES_APPLICATION_LOGS", cloudwatch_log_group_arn=log_group)
            ],
            software_update_options=module.OpensearchDomainSoftwareUpdateOptions(auto_software_update_enabled=True),
            lifecycle=TerraformResourceLifecycle(prevent_destroy=True) if environment.spec.protect else None,
            depends_on=[first, *self._service_role(domain)],
        )
        made.override_logical_id(id)
        self.arn: str = made.arn
        self.endpoint: str = made.endpoint
        self._leave_to_iam(environment, made, id)

    def _security_group(self, environment: Environment, vpc_id: str, clients: Sequence[str]) -> str:
        group = aws.security_group.SecurityGroup(
            self,
            "security-group",
            name=f"{environment.prefix}-log-search",
            description="OpenSearch of the jobs' logs: from the cluster's nodes, over HTTPS",
            vpc_id=vpc_id,
        )
        group.override_logical_id(f"{self.node.id}-search")
        for number, client in enumerate(clients, start=1):
            further = "" if number == 1 else f"-{number}"
            rule = aws.vpc_security_group_ingress_rule.VpcSecurityGroupIngressRule(
                self,
                f"ingress{further}",
                security_group_id=group.id,
                referenced_security_group_id=client,
                ip_protocol="tcp",
                from_port=HTTPS,
                to_port=HTTPS,
                description="Logs from the cluster's nodes",
            )
            rule.override_logical_id(f"{self.node.id}-search{further}")
        identity: str = group.id
        return identity

    def _service_role(self, domain: OpenSearchDomain) -> list[Any]:
        """The service-linked role through which OpenSearch accesses the VPC. An account has at most one."""
        if domain.service_role == "existing":
            return []
        role = aws.iam_service_linked_role.IamServiceLinkedRole(self, "service-role", aws_service_name=SERVICE_ROLE)
        role.override_logical_id(f"{self.node.id}-search")
        return [role]

    def _log_group(self, environment: Environment, key_arn: str) -> tuple[str, Any]:
        """The domain's own log group and the permission to write to it, which OpenSearch checks before it creates the domain."""
        group = aws.cloudwatch_log_group.CloudwatchLogGroup(
            self,
            "log",
            name=f"/penstock/{environment.name}/log-search",
            retention_in_days=environment.spec.observability.log_retention_days,
            kms_key_id=key_arn,
        )
        group.override_logical_id(f"{self.node.id}-search")
        partition = aws.data_aws_partition.DataAwsPartition(self, "partition")
        partition.override_logical_id(f"{self.node.id}-search-partition")
        arn = log_group_arn(environment, partition.partition, f"/penstock/{environment.name}/log-search")
        actions = ["logs:PutLogEvents", "logs:CreateLogStream"]
        ours = {"StringEquals": {"aws:SourceAccount": environment.spec.account}}
        policy = aws.cloudwatch_log_resource_policy.CloudwatchLogResourcePolicy(
            self,
            "log-policy",
            policy_name=f"{environment.prefix}-log-search",
            policy_document=document([allow_service("OpenSearch", LOGS_SERVICE, actions, [f"{arn}:*"], ours)]),
        )
        policy.override_logical_id(f"{self.node.id}-search")
        made: str = group.arn
        return made, policy

    def _leave_to_iam(self, environment: Environment, domain: Any, id: str) -> None:
        """Without an access policy a domain denies all requests; this one admits the principals that the account's own policies allow."""
        partition = aws.data_aws_partition.DataAwsPartition(self, "account-partition")
        partition.override_logical_id(f"{id}-account-partition")
        root = f"arn:{partition.partition}:iam::{environment.spec.account}:root"
        statement = {
            "Sid": "AccountDecides",
            "Effect": "Allow",
            "Principal": {"AWS": root},
            "Action": "es:ESHttp*",
            "Resource": f"{domain.arn}/*",
        }
        policy = aws.opensearch_domain_policy.OpensearchDomainPolicy(
            self, "policy", domain_name=domain.domain_name, access_policies=document([statement])
        )
        policy.override_logical_id(id)


def _cluster(domain: OpenSearchDomain, zones: int) -> Any:
    module = aws.opensearch_domain
    aware = zones > 1
    masters = domain.instances >= MOST_ZONES
    return module.OpensearchDomainClusterConfig(
        instance_type=domain.instance_type,
        instance_count=domain.instances,
        zone_awareness_enabled=aware,
        zone_awareness_config=module.OpensearchDomainClusterConfigZoneAwarenessConfig(availability_zone_count=zones) if aware else None,
        dedicated_master_enabled=masters,
        dedicated_master_count=MASTERS if masters else None,
        dedicated_master_type=MASTER_TYPE if masters else None,
    )


def _name(environment: Environment) -> str:
    name = environment.prefix
    if len(name) > MAX_NAME:
        need = f"at most {MAX_NAME - len('penstock-')} characters: an OpenSearch domain name has at most {MAX_NAME}, with penstock-"
        fault = NameTooLong(given=environment.name, need=need, fix="use use a shorter name, or openSearch.endpoint")
        raise environment.locate(fault, "metadata", "name")
    return name
