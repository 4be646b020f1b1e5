"""An IAM role with its policies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from constructs import Construct

from penstock.infra.aws_bindings import aws
from penstock.infra.constructs.aws_stack import AwsStack
from penstock.infra.environment import Environment
from penstock.infra.policies import Condition, Statement, document, trust

# The service through which pods of the cluster assume roles. Source: Amazon EKS User Guide, "EKS Pod Identity role".
POD_IDENTITY_SERVICE = "pods.eks.amazonaws.com"
POD_IDENTITY_ACTIONS = ("sts:AssumeRole", "sts:TagSession")
# Source: IAM User Guide, "IAM and AWS STS quotas".
MAX_NAME = 64


class Role(Construct):
    """A role with an inline policy, managed policies and the environment's permissions boundary.

    Args:
        scope: the stack.
        id: the construct's id and the logical id of its resources.
        name: of the role, at most 64 characters.
        trusted: who may assume it, a statement of `penstock.infra.policies.trust`.
        statements: of the inline policy; empty: only the managed policies apply.
        managed: ARNs of managed policies, by the id of the attachment.

    `policies` are the resources that grant the role its permissions: users of the role depend on them, to be created after and destroyed
    before them.
    """

    def __init__(
        self, scope: Construct, id: str, *, name: str, trusted: Statement, statements: Sequence[Statement] = (), managed: Sequence[str] = ()
    ) -> None:
        super().__init__(scope, id)
        boundary = AwsStack.of(self).environment.spec.permissions_boundary
        role = aws.iam_role.IamRole(self, "role", name=name, assume_role_policy=document([trusted]), permissions_boundary=boundary)
        role.override_logical_id(id)
        self.arn: str = role.arn
        self.name: str = role.name
        self.policies: list[Any] = [self._attached(id, arn) for arn in managed]
        if statements:
            own = aws.iam_role_policy.IamRolePolicy(self, "policy", name=name, role=role.name, policy=document(statements))
            own.override_logical_id(id)
            self.policies.append(own)

    def _attached(self, id: str, policy: str) -> Any:
        name = f"{id}-{policy.rpartition('/')[2]}"
        attached = aws.iam_role_policy_attachment.IamRolePolicyAttachment(self, name, role=self.name, policy_arn=policy)
        attached.override_logical_id(name)
        return attached


def pod_identity_trust(environment: Environment, partition: str) -> Statement:
    """Allows EKS Pod Identity to assume a role, for pods of the environment's cluster.

    Source: Amazon EKS Best Practices Guide, "Identity and Access Management": its SourceArn is the cluster's ARN, not an association's.

    Args:
        environment: of the cluster.
        partition: of AWS, such as ``aws``.
    """
    return trust(POD_IDENTITY_SERVICE, of_cluster(environment, partition), POD_IDENTITY_ACTIONS)


def of_cluster(environment: Environment, partition: str) -> Condition:
    """Holds for what EKS does for the environment's cluster, and not for others.

    Source: Amazon EKS User Guide, "Cross-service confused deputy prevention".

    Args:
        environment: of the cluster.
        partition: of AWS, such as ``aws``.
    """
    spec = environment.spec
    arn = f"arn:{partition}:eks:{spec.region}:{spec.account}:cluster/{environment.cluster_name}"
    return {"StringEquals": {"aws:SourceAccount": spec.account}, "ArnLike": {"aws:SourceArn": arn}}
