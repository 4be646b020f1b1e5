"""The Kafka stack: MSK for the environment's jobs, with IAM authentication over TLS, or the address of external brokers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cdktf import TerraformOutput, TerraformResourceLifecycle
from constructs import Construct

from penstock.infra.aws_bindings import aws
from penstock.infra.broker_plan import BrokerPlan, broker_plan
from penstock.infra.broker_settings import server_properties
from penstock.infra.constructs.aws_stack import AwsStack
from penstock.infra.constructs.encryption_key import EncryptionKey
from penstock.infra.environment import Environment
from penstock.infra.errors import BrokersUnknown
from penstock.infra.log_encryption import log_group_arn, logs_service
from penstock.infra.parts.kafka import Kafka
from penstock.infra.plans import EnvironmentPlans, partitions
from penstock.infra.stacks.network import NetworkOutputs
from penstock.jobs.configuration.kafka_access import Security

# Source: Amazon MSK Developer Guide, "Port information": clients with IAM, within AWS.
IAM_PORT = 9098

STACK = "kafka"
# KRaft, because a cluster created with ZooKeeper keeps it, and Kafka 4 does not support it. Express versions have no such suffix.
KAFKA_VERSION, EXPRESS_KAFKA_VERSION = "3.9.x.kraft", "3.9.x"
# Source: Amazon MSK Developer Guide, "Auto-scaling policy details": 50 to 60 % recommended, 10 to 80 % accepted.
GROW_STORAGE_AT_PERCENT = 60
# Volumes that have grown beyond their initial size are not a difference.
GROWN_STORAGE = "broker_node_group_info[0].storage_info[0].ebs_storage_info[0].volume_size"


@dataclass(frozen=True)
class KafkaOutputs:
    """Outputs for other stacks.

    Args:
        cluster_arn: of the MSK cluster; None: external brokers other than MSK's.
        cluster_name: of the MSK cluster; None: external brokers.
        bootstrap_brokers: for clients: ``host:port``, comma-separated.
        security_group_id: of the brokers, without rules, which their users add; None: external brokers.
        security: of the brokers' listener.
    """

    cluster_arn: str | None
    cluster_name: str | None
    bootstrap_brokers: str
    security_group_id: str | None
    security: Security


class KafkaStack(AwsStack):
    """The brokers.

    Args:
        scope: the app.
        environment: the environment of the stack, with a network.
        network: of the brokers.
        plans: of its jobs, which determine number and type of the brokers.

    Raises:
        PenstockError: INF-043 if the environment has no brokers; INF-040, INF-041, SIZ-040 or SIZ-042 if MSK does not offer them.
    """

    def __init__(self, scope: Construct, environment: Environment, network: NetworkOutputs, plans: EnvironmentPlans) -> None:
        super().__init__(scope, STACK, environment)
        kafka = environment.spec.kafka
        if kafka is None:
            # Brokers that were not requested would still be billed.
            need = "the Kafka brokers of the jobs: kind: standard, express, serverless, or external with bootstrapServers"
            raise environment.locate(BrokersUnknown(need=need, fix="add kafka to the environment"), "spec", "kafka")
        self._kafka = kafka
        self._network = network
        if kafka.kind == "external":
            self.outputs = _external(environment, kafka)
        elif kafka.kind == "serverless":
            self.outputs = self._serverless()
        else:
            self.outputs = self._provisioned(broker_plan(environment, kafka, plans))
        self.export(self.outputs)
        # `penstock topics` creates them; this output shows changes of their partitions in a diff.
        TerraformOutput(self, "topics", value=partitions(plans))

    def _security_group(self) -> str:
        """The brokers' security group: open to clients that manage topics, which exist before the jobs; the jobs stack adds the jobs."""
        group = aws.security_group.SecurityGroup(
            self,
            "brokers",
            name=f"{self.environment.prefix}-brokers",
            description="Kafka brokers; the jobs add a rule",
            vpc_id=self._network.vpc_id,
            tags={"Name": f"{self.environment.prefix}-brokers"},
        )
        group_id: str = group.id
        for number, cidr in enumerate(self._kafka.client_cidrs or [self._network.vpc_cidr], start=1):
            aws.vpc_security_group_ingress_rule.VpcSecurityGroupIngressRule(
                self,
                f"clients-{number}",
                security_group_id=group_id,
                cidr_ipv4=cidr,
                ip_protocol="tcp",
                from_port=IAM_PORT,
                to_port=IAM_PORT,
                description="Who looks after the topics",
            )
        return group_id

    def _kept(self, ignore: list[str] | None = None) -> TerraformResourceLifecycle:
        return TerraformResourceLifecycle(prevent_destroy=self.environment.spec.protect, ignore_changes=ignore)

    def _serverless(self) -> KafkaOutputs:
        module = aws.msk_serverless_cluster
        iam = module.MskServerlessClusterClientAuthenticationSasl(iam=module.MskServerlessClusterClientAuthenticationSaslIam(enabled=True))
        group = self._security_group()
        cluster = module.MskServerlessCluster(
            self,
            "kafka",
            cluster_name=self.environment.prefix,
            vpc_config=[
                module.MskServerlessClusterVpcConfig(subnet_ids=list(self._network.private_subnet_ids), security_group_ids=[group])
            ],
            client_authentication=module.MskServerlessClusterClientAuthentication(sasl=iam),
            lifecycle=self._kept(),
        )
        return self._outputs(cluster, group)

    def _provisioned(self, plan: BrokerPlan) -> KafkaOutputs:
        module = aws.msk_cluster
        group = self._security_group()
        key, log_group = self._logs()
        cluster = module.MskCluster(
            self,
            "kafka",
            cluster_name=self.environment.prefix,
            kafka_version=self._kafka.version or (EXPRESS_KAFKA_VERSION if self._kafka.kind == "express" else KAFKA_VERSION),
            number_of_broker_nodes=plan.brokers,
            broker_node_group_info=self._nodes(plan, group),
            configuration_info=self._configuration(),
            client_authentication=_iam_alone(),
            encryption_info=_encrypted(key),
            enhanced_monitoring=self._kafka.monitoring,
            open_monitoring=_metrics(),
            logging_info=_logged(log_group),
            storage_mode=None if plan.storage_gib is None else ("TIERED" if self._kafka.tiered_storage else "LOCAL"),
            lifecycle=self._kept(None if plan.storage_gib is None else [GROWN_STORAGE]),
        )
        if plan.max_storage_gib is not None:
            self._grow_storage(cluster.arn, plan.max_storage_gib)
        return self._outputs(cluster, group)

    def _logs(self) -> tuple[str, str]:
        """The key for the brokers' volumes and logs, and the log group."""
        name = f"/{self.environment.prefix}/kafka"
        partition = aws.data_aws_partition.DataAwsPartition(self, "partition")
        arn = log_group_arn(self.environment, partition.partition, name)
        service = logs_service(self.environment, partition.dns_suffix, arn)
        key = EncryptionKey(self, "key", self.environment, description=f"Kafka of {self.environment.prefix}", services=[service])
        group = aws.cloudwatch_log_group.CloudwatchLogGroup(
            self, "logs", name=name, retention_in_days=self._kafka.log_retention_days, kms_key_id=key.arn
        )
        return key.arn, group.name

    def _nodes(self, plan: BrokerPlan, group: str) -> Any:
        module = aws.msk_cluster
        return module.MskClusterBrokerNodeGroupInfo(
            instance_type=plan.broker_type,
            client_subnets=list(self._network.private_subnet_ids[: plan.zones]),
            security_groups=[group],
            storage_info=None if plan.storage_gib is None else _volumes(plan.storage_gib, plan.provisioned_mibps),
        )

    def _configuration(self) -> Any:
        module = aws.msk_configuration
        settings = server_properties(self._kafka)
        configuration = module.MskConfiguration(
            self,
            "configuration",
            name=self.environment.prefix,
            description=f"Brokers of {self.environment.prefix}",
            server_properties="\n".join(f"{name} = {value}" for name, value in settings.items()) + "\n",
        )
        info = aws.msk_cluster.MskClusterConfigurationInfo
        return info(arn=configuration.arn, revision=configuration.latest_revision)

    def _grow_storage(self, cluster_arn: str, max_storage_gib: int) -> None:
        """Volumes grow when their usage reaches a share; they never shrink."""
        target = aws.appautoscaling_target.AppautoscalingTarget(
            self,
            "storage",
            service_namespace="kafka",
            scalable_dimension="kafka:broker-storage:VolumeSize",
            resource_id=cluster_arn,
            # Source: Amazon MSK Developer Guide, "Set up automatic scaling using the CLI": the minimum must be 1.
            min_capacity=1,
            max_capacity=max_storage_gib,
        )
        module = aws.appautoscaling_policy
        metric = module.AppautoscalingPolicyTargetTrackingScalingPolicyConfigurationPredefinedMetricSpecification(
            predefined_metric_type="KafkaBrokerStorageUtilization"
        )
        module.AppautoscalingPolicy(
            self,
            "grow-storage",
            name=f"{self.environment.prefix}-kafka-storage",
            policy_type="TargetTrackingScaling",
            service_namespace=target.service_namespace,
            scalable_dimension=target.scalable_dimension,
            resource_id=target.resource_id,
            target_tracking_scaling_policy_configuration=module.AppautoscalingPolicyTargetTrackingScalingPolicyConfiguration(
                target_value=GROW_STORAGE_AT_PERCENT, disable_scale_in=True, predefined_metric_specification=metric
            ),
        )

    def _outputs(self, cluster: Any, group: str) -> KafkaOutputs:
        return KafkaOutputs(
            cluster_arn=cluster.arn,
            cluster_name=cluster.cluster_name,
            bootstrap_brokers=cluster.bootstrap_brokers_sasl_iam,
            security_group_id=group,
            security="iam",
        )


def _external(environment: Environment, kafka: Kafka) -> KafkaOutputs:
    if kafka.bootstrap_servers is None:
        fix = 'bootstrapServers: "broker-1:9094,broker-2:9094"'
        fault = BrokersUnknown(need="the brokers' addresses, for kind: external", fix=fix)
        raise environment.locate(fault, "spec", "kafka", "bootstrapServers")
    return KafkaOutputs(
        cluster_arn=kafka.cluster_arn,
        cluster_name=None,
        bootstrap_brokers=kafka.bootstrap_servers,
        security_group_id=None,
        security=kafka.client_security,
    )


def _iam_alone() -> Any:
    module = aws.msk_cluster
    sasl = module.MskClusterClientAuthenticationSasl(iam=True, scram=False)
    return module.MskClusterClientAuthentication(unauthenticated=False, sasl=sasl)


def _encrypted(key_arn: str) -> Any:
    module = aws.msk_cluster
    transit = module.MskClusterEncryptionInfoEncryptionInTransit(client_broker="TLS", in_cluster=True)
    return module.MskClusterEncryptionInfo(encryption_at_rest_kms_key_arn=key_arn, encryption_in_transit=transit)


def _metrics() -> Any:
    """Both exporters. Their clients open the ports 11001 and 11002 themselves."""
    module = aws.msk_cluster
    prometheus = module.MskClusterOpenMonitoringPrometheus(
        jmx_exporter=module.MskClusterOpenMonitoringPrometheusJmxExporter(enabled_in_broker=True),
        node_exporter=module.MskClusterOpenMonitoringPrometheusNodeExporter(enabled_in_broker=True),
    )
    return module.MskClusterOpenMonitoring(prometheus=prometheus)


def _logged(log_group: str) -> Any:
    module = aws.msk_cluster
    cloudwatch = module.MskClusterLoggingInfoBrokerLogsCloudwatchLogs(enabled=True, log_group=log_group)
    return module.MskClusterLoggingInfo(broker_logs=module.MskClusterLoggingInfoBrokerLogs(cloudwatch_logs=cloudwatch))


def _volumes(storage_gib: int, provisioned_mibps: int) -> Any:
    module = aws.msk_cluster
    throughput = None
    if provisioned_mibps:
        throughput = module.MskClusterBrokerNodeGroupInfoStorageInfoEbsStorageInfoProvisionedThroughput(
            enabled=True, volume_throughput=provisioned_mibps
        )
    volume = module.MskClusterBrokerNodeGroupInfoStorageInfoEbsStorageInfo(volume_size=storage_gib, provisioned_throughput=throughput)
    return module.MskClusterBrokerNodeGroupInfoStorageInfo(ebs_storage_info=volume)
