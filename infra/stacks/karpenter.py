"""The karpenter stack: what Karpenter needs on AWS. The controller itself comes with the karpenter-charts stack."""

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
from penstock.infra.policies import document, trust

STACK = "karpenter"
NAMESPACE = "kube-system"
SERVICE_ACCOUNT = "karpenter"
# Source: the template of karpenter-provider-aws v1.14.1. A warning is of no use once its machine is gone, 2 minutes later at the most.
QUEUE_RETENTION_S = 300
SPOT_SERVICE = "spot.amazonaws.com"


def isolated(environment: Environment) -> bool:
    """Whether the nodes, and Karpenter on them, reach nothing of AWS but what has an endpoint in the VPC: IAM and the prices have none.

    Args:
        environment: whose network it is.
    """
    network = environment.spec.network
    return network is not None and network.nat_gateways == 0


class Cluster(Protocol):
    """What of the cluster stack's outputs this stack needs."""

    @property
    def cluster_name(self) -> str:
        """Of the EKS cluster."""


@dataclass(frozen=True)
class KarpenterOutputs:
    """What other stacks take from this one.

    Args:
        interruption_queue: name of the queue that the controller reads.
        controller_role_arn: the role that its pods take.
        node_role_name: the role of the machines that it makes.
    """

    interruption_queue: str
    controller_role_arn: str
    node_role_name: str


class KarpenterStack(AwsStack):
    """The roles of Karpenter's controller and of its nodes, the queue of interruptions and the rules that fill it.

    Args:
        scope: the app.
        environment: whose cluster it is.
        cluster: the cluster.
    """

    def __init__(self, scope: Construct, environment: Environment, cluster: Cluster) -> None:
        super().__init__(scope, STACK, environment)
        found = aws.data_aws_partition.DataAwsPartition(self, "partition")
        self._partition: str = found.partition
        spec = environment.spec
        self._home = Home(self._partition, spec.region, spec.account, environment.prefix)
        node_role = self._node_role(f"ec2.{found.dns_suffix}", cluster)
        queue, queue_arn = self._queue()
        self._rules(queue_arn)
        controller = self._controller_role(node_role.arn, queue_arn, cluster)
        self._spot_role()
        self.outputs = KarpenterOutputs(interruption_queue=queue, controller_role_arn=controller.arn, node_role_name=node_role.name)
        self.export(self.outputs)

    def _node_role(self, ec2_service: str, cluster: Cluster) -> Role:
        """The machines' role, and its entry into the cluster as a Linux node's, no more."""
        managed = [f"arn:{self._partition}:iam::aws:policy/{name}" for name in NODE_POLICIES]
        role = Role(self, "node", name=f"{self.environment.prefix}-karpenter-node", trusted=trust(ec2_service), managed=managed)
        entry = aws.eks_access_entry.EksAccessEntry
        entry(self, "node-entry", cluster_name=cluster.cluster_name, principal_arn=role.arn, type="EC2_LINUX")
        if isolated(self.environment):
            # Karpenter makes a profile for the role by itself, where it reaches IAM; this one it is told by name, which is the role's.
            aws.iam_instance_profile.IamInstanceProfile(self, "node-profile", name=role.name, role=role.name)
        return role

    def _queue(self) -> tuple[str, str]:
        """The queue's name and ARN. Its messages name machines of the account, so that SQS's own key is enough for them."""
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
        """The controller's role, for the pods of its service account alone."""
        role = Role(
            self,
            "controller",
            name=f"{self.environment.prefix}-karpenter-controller",
            trusted=pod_identity_trust(self.environment.spec.account),
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
        """The role by which EC2 starts spot machines. An account has one at the most, so that two environments can't both make it."""
        nodes = self.environment.spec.nodes
        if nodes is not None and nodes.spot_service_role == "create":
            aws.iam_service_linked_role.IamServiceLinkedRole(self, "spot", aws_service_name=SPOT_SERVICE)
