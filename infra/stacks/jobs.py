"""The jobs stack: the permissions of each job on AWS."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from cdktf import Fn
from constructs import Construct

from penstock.infra.aws_bindings import aws
from penstock.infra.constructs.aws_stack import AwsStack
from penstock.infra.constructs.role import MAX_NAME, Role, pod_identity_trust
from penstock.infra.environment import Environment
from penstock.infra.job_connections import refuse_unknown_connections, secrets_of
from penstock.infra.job_folders import refuse_inputs_that_begin_alike, refuse_shared_folders
from penstock.infra.job_rights import Brokers, Buckets, statements, union
from penstock.infra.manifests import topics_job
from penstock.infra.manifests.deployed_job import Component, namespace, service_account
from penstock.infra.plans import EnvironmentPlans
from penstock.infra.policies import Statement
from penstock.infra.short_names import shortened
from penstock.infra.stacks.kafka import IAM_PORT
from penstock.infra.topic_rights import by_brokers
from penstock.jobs.configuration.kafka_access import Security

STACK = "jobs"
# Source: Amazon MSK Developer Guide, "Port information".
BROKER_PORTS: dict[Security, int] = {"iam": IAM_PORT, "tls": 9094, "mtls": 9094, "plaintext": 9092, "sasl-scram": 9096, "sasl-plain": 9096}
_COMPONENTS: tuple[Component, ...] = ("driver", "executor")


class Checkpoints(Protocol):
    """The outputs of the checkpoints stack that this stack uses."""

    @property
    def checkpoints_bucket_arn(self) -> str:
        """ARN of the bucket of the checkpoints."""

    @property
    def output_bucket_arn(self) -> str:
        """ARN of the bucket of the output."""

    @property
    def key_arn(self) -> str:
        """ARN of the KMS key of both."""


class Kafka(Protocol):
    """The outputs of the kafka stack that this stack uses."""

    @property
    def cluster_arn(self) -> str | None:
        """ARN of the MSK cluster; None: the brokers are not MSK's."""

    @property
    def security_group_id(self) -> str | None:
        """Security group of the brokers; None: the brokers are not part of the stacks."""

    @property
    def security(self) -> Security:
        """The security protocol of the brokers' clients."""


class Cluster(Protocol):
    """The outputs of the cluster stack that this stack uses."""

    @property
    def cluster_name(self) -> str:
        """Name of the EKS cluster."""

    @property
    def node_security_group_ids(self) -> tuple[str, ...]:
        """Security groups of its nodes and pods."""


@dataclass(frozen=True)
class JobsOutputs:
    """Outputs for other stacks.

    Args:
        role_arns: job, or session -> the role of its pods.
    """

    role_arns: dict[str, str]


class JobsStack(AwsStack):
    """A role for each job, or session, for the pods of its two service accounts and no others; and the cluster's access to the brokers.

    Args:
        scope: the app.
        environment: the environment of the stack.
        plans: of the jobs.
        checkpoints: buckets of the jobs.
        kafka: brokers of the jobs.
        cluster: of the jobs.

    Raises:
        PenstockError: INF-051, INF-054, INF-070 and INF-071; several are raised as `Faults`.
    """

    def __init__(
        self, scope: Construct, environment: Environment, plans: EnvironmentPlans, checkpoints: Checkpoints, kafka: Kafka, cluster: Cluster
    ) -> None:
        super().__init__(scope, STACK, environment)
        refuse_shared_folders(plans.jobs, environment.spec.buckets.output)
        refuse_inputs_that_begin_alike(plans.jobs, environment.spec.buckets.output)
        refuse_unknown_connections(plans.jobs, environment)
        self._cluster = cluster
        partition = aws.data_aws_partition.DataAwsPartition(self, "partition")
        self._partition: str = partition.partition
        buckets = Buckets(
            checkpoints_arn=checkpoints.checkpoints_bucket_arn,
            output_arn=checkpoints.output_bucket_arn,
            output=environment.spec.buckets.output,
            key_arn=checkpoints.key_arn,
            service=f"s3.{environment.spec.region}.{partition.dns_suffix}",
        )
        brokers = _brokers(kafka)
        granted = {job.name: statements(job.spec, buckets, brokers, secrets_of(job.spec, environment)) for job in plans.jobs}
        shared = {one.name: union([granted[job] for job in one.plan.jobs]) for one in plans.sessions}
        own = {**{job.name: granted[job.name] for job in plans.apart}, **shared}
        self.outputs = JobsOutputs({name: self._role(name, rights) for name, rights in own.items()})
        if needs_topics_role(environment):
            self._topics_role()
        if kafka.security_group_id is not None:
            self._open_brokers(kafka.security_group_id, BROKER_PORTS[kafka.security])
        self.export(self.outputs)

    def _role(self, job: str, rights: Sequence[Statement]) -> str:
        """The ARN of the role of a job, or of a session."""
        role = Role(
            self,
            f"job-{job}",
            name=shortened(f"{self.environment.prefix}-job-{job}", MAX_NAME),
            trusted=pod_identity_trust(self.environment, self._partition),
            statements=rights,
        )
        for component in _COMPONENTS:
            account = service_account(job, component)
            module = aws.eks_pod_identity_association
            module.EksPodIdentityAssociation(
                self,
                f"identity-{account}",
                cluster_name=self._cluster.cluster_name,
                namespace=namespace(job),
                service_account=account,
                role_arn=role.arn,
            ).override_logical_id(f"job-{account}")
        return role.arn

    def _topics_role(self) -> None:
        """Of the pods that apply topics from within the cluster."""
        role = Role(
            self,
            "topics",
            name=shortened(f"{self.environment.prefix}-topics", MAX_NAME),
            trusted=pod_identity_trust(self.environment, self._partition),
            statements=by_brokers(self.environment, self._partition),
        )
        module = aws.eks_pod_identity_association
        module.EksPodIdentityAssociation(
            self,
            "identity-topics",
            cluster_name=self._cluster.cluster_name,
            namespace=topics_job.NAMESPACE,
            service_account=topics_job.ACCOUNT,
            role_arn=role.arn,
        ).override_logical_id("topics")

    def _open_brokers(self, group: str, port: int) -> None:
        for number, nodes in enumerate(self._cluster.node_security_group_ids, start=1):
            aws.vpc_security_group_ingress_rule.VpcSecurityGroupIngressRule(
                self,
                "brokers" if number == 1 else f"brokers-{number}",
                description="Jobs of the cluster",
                security_group_id=group,
                referenced_security_group_id=nodes,
                ip_protocol="tcp",
                from_port=port,
                to_port=port,
            )


def needs_topics_role(environment: Environment) -> bool:
    """Whether pods that apply topics need rights on AWS: where MSK's API may not serve, and the brokers or their secret ask for some."""
    kafka = environment.spec.kafka
    if kafka is None:
        return False
    return kafka.kind == "serverless" or kafka.cluster_arn is not None or kafka.secret is not None


def _brokers(kafka: Kafka) -> Brokers | None:
    if kafka.security != "iam" or kafka.cluster_arn is None:
        return None
    # arn:aws:kafka:<region>:<account>:cluster/<name>/<id>, and the same with topic, group or transactional-id.
    topics, groups, transactions = (
        Fn.replace(kafka.cluster_arn, ":cluster/", f":{kind}/") for kind in ("topic", "group", "transactional-id")
    )
    return Brokers(cluster_arn=kafka.cluster_arn, topics_arn=topics, groups_arn=groups, transactions_arn=transactions)
