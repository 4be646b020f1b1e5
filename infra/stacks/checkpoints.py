"""The checkpoints stack: the buckets that hold what a job must not lose."""

from __future__ import annotations

import json
from dataclasses import dataclass

from cdktf import TerraformOutput, TerraformResourceLifecycle, TerraformStack
from constructs import Construct

from infra.aws_bindings import aws
from infra.constructs.private_bucket import PrivateBucket
from infra.constructs.provider import provider
from infra.environment import Environment
from infra.state import keep_state

STACK = "checkpoints"
# Spark deletes old files of a checkpoint by itself; a version of one is kept this long against a delete that was a mistake.
EXPIRE_OLD_CHECKPOINTS_AFTER_DAYS = 14
# KMS's longest: what a deleted key has encrypted is lost for good. Source: KMS API reference, ScheduleKeyDeletion, 7 to 30 days.
KEY_DELETION_WINDOW_DAYS = 30
UNPROTECTED_KEY_DELETION_WINDOW_DAYS = 7


@dataclass(frozen=True)
class CheckpointsOutputs:
    """What other stacks take from this one: names and ARNs, as tokens that Terraform resolves."""

    checkpoints_bucket: str
    checkpoints_bucket_arn: str
    output_bucket: str
    output_bucket_arn: str
    key_arn: str


class CheckpointsStack(TerraformStack):
    """Two buckets, one for checkpoints and savepoints, one for the jobs' output, and the key that encrypts both.

    Args:
        scope: the app.
        environment: whose buckets they are.
    """

    def __init__(self, scope: Construct, environment: Environment) -> None:
        super().__init__(scope, STACK)
        spec = environment.spec
        keep_state(self, environment)
        provider(self, environment)
        key_arn = self._key(environment)
        checkpoints = PrivateBucket(
            self,
            "checkpoints",
            name=spec.buckets.checkpoints,
            key_arn=key_arn,
            protect=spec.protect,
            expire_old_versions_after_days=EXPIRE_OLD_CHECKPOINTS_AFTER_DAYS,
        )
        output = PrivateBucket(self, "output", name=spec.buckets.output, key_arn=key_arn, protect=spec.protect)
        self.outputs = CheckpointsOutputs(
            checkpoints_bucket=checkpoints.name,
            checkpoints_bucket_arn=checkpoints.arn,
            output_bucket=output.name,
            output_bucket_arn=output.arn,
            key_arn=key_arn,
        )
        for name, value in vars(self.outputs).items():
            TerraformOutput(self, name, value=value)

    def _key(self, environment: Environment) -> str:
        """The key's ARN. Who may use it is said by IAM policies, which its own policy leaves to the account."""
        protect = environment.spec.protect
        partition = aws.data_aws_partition.DataAwsPartition(self, "partition").partition
        account = f"arn:{partition}:iam::{environment.spec.account}:root"
        statement = {"Sid": "AccountDecides", "Effect": "Allow", "Principal": {"AWS": account}, "Action": "kms:*", "Resource": "*"}
        key = aws.kms_key.KmsKey(
            self,
            "key",
            description=f"Checkpoints and output of penstock {environment.name}",
            enable_key_rotation=True,
            deletion_window_in_days=KEY_DELETION_WINDOW_DAYS if protect else UNPROTECTED_KEY_DELETION_WINDOW_DAYS,
            policy=json.dumps({"Version": "2012-10-17", "Statement": [statement]}),
            lifecycle=TerraformResourceLifecycle(prevent_destroy=True) if protect else None,
        )
        arn: str = key.arn
        return arn
