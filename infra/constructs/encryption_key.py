"""A KMS key of a stack's own."""

from __future__ import annotations

from collections.abc import Sequence

from cdktf import TerraformResourceLifecycle
from constructs import Construct

from penstock.infra.aws_bindings import aws
from penstock.infra.environment import Environment
from penstock.infra.policies import Condition, Statement, allow_service, document

# KMS's longest: what a deleted key has encrypted is lost for good. Source: KMS API reference, ScheduleKeyDeletion, 7 to 30 days.
DELETION_WINDOW_DAYS = 30
UNPROTECTED_DELETION_WINDOW_DAYS = 7
# What a service does with a key that encrypts what it keeps. Source: CloudWatch Logs User Guide, "Encrypt log data using KMS".
_USE = ("kms:Encrypt*", "kms:Decrypt*", "kms:ReEncrypt*", "kms:GenerateDataKey*", "kms:Describe*")


class EncryptionKey(Construct):
    """A key that is rotated each year and kept as long as KMS can after its deletion.

    Who may use it is said by IAM policies, which its own policy leaves to the account; services that act by themselves are named.

    Args:
        scope: the stack.
        id: the construct's id and the key's logical id.
        environment: whose it is.
        description: for people.
        services: service principal and the condition on which it may use the key.
    """

    def __init__(
        self, scope: Construct, id: str, environment: Environment, *, description: str, services: Sequence[tuple[str, Condition]] = ()
    ) -> None:
        super().__init__(scope, id)
        protect = environment.spec.protect
        partition = aws.data_aws_partition.DataAwsPartition(self, "partition")
        partition.override_logical_id(f"{id}-partition")
        key = aws.kms_key.KmsKey(
            self,
            "key",
            description=description,
            enable_key_rotation=True,
            deletion_window_in_days=DELETION_WINDOW_DAYS if protect else UNPROTECTED_DELETION_WINDOW_DAYS,
            policy=document(_statements(partition.partition, environment.spec.account, services)),
            lifecycle=TerraformResourceLifecycle(prevent_destroy=True) if protect else None,
        )
        key.override_logical_id(id)
        self.arn: str = key.arn
        self.id: str = key.key_id


def _statements(partition: str, account: str, services: Sequence[tuple[str, Condition]]) -> list[Statement]:
    """A key's policy names the key itself by ``*``."""
    root = f"arn:{partition}:iam::{account}:root"
    own = {"Sid": "AccountDecides", "Effect": "Allow", "Principal": {"AWS": root}, "Action": "kms:*", "Resource": "*"}
    return [own, *(allow_service(f"Service{n}", service, _USE, ["*"], condition) for n, (service, condition) in enumerate(services, 1))]
