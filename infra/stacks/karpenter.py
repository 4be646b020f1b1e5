"""The karpenter stack: Karpenter's AWS resources. The controller itself is in the karpenter-charts stack."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from constructs import Construct

from penstock.infra.aws_bindings import aws
from penstock.infra.constructs.aws_stack import AwsStack
from penstock.infra.constructs.role import Role, pod_identity_trust
from penstock.infra.constructs.system_nodes import NODE_POLICIES
from penstock.infra.environment import Environment
from penstock.infra.interruptions import EVENTS, pattern
from penstock.infra.karpenter_policies import Home, controller_statements, queue_statements
from penstock.infra.karpenter_settings import NAMESPACE
from penstock.infra.policies import document, trust

STACK = "karpenter"
SERVICE_ACCOUNT = "karpenter"
# Source: the template of karpenter-provider-aws v1.14.1. A warning is useless once its instance is gone, after 2 minutes at most.
QUEUE_RETENTION_S = 300
SPOT_SERVICE = "spot.amazonaws.com"


def isolated(environment: Environment) -> bool:
    """Whether the nodes, and Karpenter on them, only reach AWS services with an endpoint in the VPC: IAM and the price list have none.

    Args:
        environment: the environment of the network.
    """
    network = environment.spec.network
    return network is not None and network.nat_gateways == 0


class Cluster(Protocol):
    """The outputs of the cluster stack that this stack uses."""

    @property
    def cluster_name(self) -> str:
        """Name of the EKS cluster."""


@dataclass(frozen=True)
class KarpenterOutputs:
    """Outputs for other stacks.

    Args:
        interruption_queue: name of the queue that the controller reads; None: it is that of a Karpenter that the cluster has.
        controller_role_arn: the role that its pods assume; None likewise.
        node_role_name: the role of the instances that it launches; None: the NodePools are those of the cluster.
    """

    interruption_queue: str | None
    controller_role_arn: str | None
    node_role_name: str | None


class KarpenterStack(AwsStack):
    """The roles of Karpenter's controller and of its nodes, the interruption queue and the rules that send to it; a Karpenter that the
    cluster has already has all of them.

    Args:
        scope: the app.
        environment: the environment of the stack.
        cluster: the cluster.
    """

    def __init__(self, scope: Construct, environment: Environment, cluster: Cluster) -> None:
        super().__init__(scope, STACK, environment)
        existing = environment.existing_cluster
        if existing is not None and existing.karpenter == "existing":
            self.outputs = KarpenterOutputs(None, None, existing.node_role)
        else:
            self.outputs = self._made(cluster)
        self._spot_role()
        self.export(self.outputs)

    def _made(self, cluster: Cluster) -> KarpenterOutputs:
        environment = self.environment
        partition = aws.data_aws_partition.DataAwsPartition(self, "partition")
        self._partition: str = partition.partition
        spec = environment.spec
        self._home = Home(self._partition, spec.region, spec.account, environment.cluster_name)
        node_role = self._node_role(f"ec2.{partition.dns_suffix}", cluster)
        queue, queue_arn = self._queue()
        self._rules(queue_arn)
        controller = self._controller_role(node_role.arn, queue_arn, cluster)
        return KarpenterOutputs(interruption_queue=queue, controller_role_arn=controller.arn, node_role_name=node_role.name)

    def _node_role(self, ec2_service: str, cluster: Cluster) -> Role:
        """The instances' role, and its access entry, of the type for Linux nodes only."""
        managed = [f"arn:{self._partition}:iam::aws:policy/{name}" for name in NODE_POLICIES]
        role = Role(self, "node", name=f"{self.environment.prefix}-karpenter-node", trusted=trust(ec2_service), managed=managed)
        entry = aws.eks_access_entry.EksAccessEntry
        entry(self, "node-entry", cluster_name=cluster.cluster_name, principal_arn=role.arn, type="EC2_LINUX")
        if isolated(self.environment):
            # Karpenter creates an instance profile for the role if it reaches IAM; otherwise it uses this one, named like the role.
            aws.iam_instance_profile.IamInstanceProfile(self, "node-profile", name=role.name, role=role.name)
        return role

    def _queue(self) -> tuple[str, str]:
        """The queue's name and ARN. Its messages only contain instance ids of the account, so SQS's own key is sufficient."""
        queue = aws.sqs_queue.SqsQueue(
            self,
            "interruptions",
            name=self.environment.prefix,
            message_retention_seconds=QUEUE_RETENTION_S,
            sqs_managed_sse_enabled=True,
        )
        statements = queue_statements(self._home, queue.arn, [self._rule_name(kind) for kind in EVENTS])
        aws.sqs_queue_policy.SqsQueuePolicy(self, "interruptions-policy", queue_url=queue.id, policy=document(statements))
        return queue.name, queue.arn

    def _rules(self, queue_arn: str) -> None:
        for kind in EVENTS:
            module = aws.cloudwatch_event_rule
            description = f"{EVENTS[kind][1]}, to Karpenter of {self.environment.prefix}"
            rule = module.CloudwatchEventRule(self, kind, name=self._rule_name(kind), description=description, event_pattern=pattern(kind))
            target = aws.cloudwatch_event_target.CloudwatchEventTarget
            target(self, f"{kind}-target", rule=rule.name, target_id="karpenter-interruptions", arn=queue_arn)

    def _rule_name(self, kind: str) -> str:
        return f"{self.environment.prefix}-{kind}"

    def _controller_role(self, node_role_arn: str, queue_arn: str, cluster: Cluster) -> Role:
        """The controller's role, only for the pods of its service account."""
        role = Role(
            self,
            "controller",
            name=f"{self.environment.prefix}-karpenter-controller",
            trusted=pod_identity_trust(self.environment, self._partition),
            statements=controller_statements(self._home, node_role_arn, queue_arn),
        )
        association = aws.eks_pod_identity_association.EksPodIdentityAssociation
        association(
            self,
            "controller-identity",
            cluster_name=cluster.cluster_name,
            namespace=NAMESPACE,
            service_account=SERVICE_ACCOUNT,
            role_arn=role.arn,
        )
        return role

    def _spot_role(self) -> None:
        """The service-linked role with which EC2 launches spot instances. An account has at most one, so two environments cannot both
        create it.
        """
        nodes = self.environment.spec.nodes
        if nodes is not None and nodes.spot_service_role == "create":
            aws.iam_service_linked_role.IamServiceLinkedRole(self, "spot", aws_service_name=SPOT_SERVICE)
