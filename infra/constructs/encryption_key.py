"""The KMS key of a stack."""

from __future__ import annotations

from collections.abc import Sequence

from cdktf import TerraformResourceLifecycle
from constructs import Construct

from penstock.infra.aws_bindings import aws
from penstock.infra.environment import Environment
from penstock.infra.policies import Condition, Statement, allow_service, document

# KMS's maximum: data encrypted with a deleted key is lost. Source: KMS API reference, ScheduleKeyDeletion, 7 to 30 days.
DELETION_WINDOW_DAYS = 30
UNPROTECTED_DELETION_WINDOW_DAYS = 7
# The actions of a service on the key that encrypts its data. Source: CloudWatch Logs User Guide, "Encrypt log data using KMS".
_USE = ("kms:Encrypt*", "kms:Decrypt*", "kms:ReEncrypt*", "kms:GenerateDataKey*", "kms:Describe*")


class EncryptionKey(Construct):
    """A key with yearly rotation and KMS's longest deletion period.

    IAM policies decide who may use it: its key policy delegates to the account. Services that act on their own behalf are named in it.

    Args:
        scope: the stack.
        id: the construct's id and the key's logical id.
        environment: the environment of the stack.
        description: for people.
        services: service principal -> condition under which it may use the key.
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
    """In a key policy, ``*`` is the key itself."""
    root = f"arn:{partition}:iam::{account}:root"
    own = {"Sid": "AccountDecides", "Effect": "Allow", "Principal": {"AWS": root}, "Action": "kms:*", "Resource": "*"}
    return [own, *(allow_service(f"Service{n}", service, _USE, ["*"], condition) for n, (service, condition) in enumerate(services, 1))]
