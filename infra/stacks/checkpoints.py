"""The checkpoints stack: the buckets of data that jobs must not lose."""

from __future__ import annotations

from dataclasses import dataclass

from constructs import Construct

from penstock.infra.aws_bindings import aws
from penstock.infra.constructs.aws_stack import AwsStack
from penstock.infra.constructs.encryption_key import EncryptionKey
from penstock.infra.constructs.private_bucket import PrivateBucket
from penstock.infra.environment import Environment
from penstock.infra.policies import Statement, allow_service
from penstock.infra.short_names import shortened

STACK = "checkpoints"
# Spark deletes old files of a checkpoint; deleted versions are kept this long, in case of accidental deletion.
EXPIRE_OLD_CHECKPOINTS_AFTER_DAYS = 14
# Long enough to investigate accesses before an incident was noticed.
EXPIRE_ACCESS_LOGS_AFTER_DAYS = 365
# Source: Amazon S3 User Guide, "General purpose bucket naming rules".
MAX_BUCKET_NAME = 63
# Source: Amazon S3 User Guide, "Enabling Amazon S3 server access logging".
LOG_DELIVERY_SERVICE = "logging.s3.amazonaws.com"


@dataclass(frozen=True)
class CheckpointsOutputs:
    """Outputs for other stacks: names and ARNs, as tokens that Terraform resolves.

    Args:
        checkpoints_bucket: its name.
        checkpoints_bucket_arn: its ARN.
        output_bucket: its name.
        output_bucket_arn: its ARN.
        key_arn: of the key that both are encrypted with.
    """

    checkpoints_bucket: str
    checkpoints_bucket_arn: str
    output_bucket: str
    output_bucket_arn: str
    key_arn: str


class CheckpointsStack(AwsStack):
    """A bucket for checkpoints and savepoints, one for the jobs' output, the key that encrypts both, and one for their access logs.

    Args:
        scope: the app.
        environment: the environment of the stack.
    """

    def __init__(self, scope: Construct, environment: Environment) -> None:
        super().__init__(scope, STACK, environment)
        spec = environment.spec
        description = f"Checkpoints and output of penstock {environment.name}"
        key_arn = EncryptionKey(self, "key", environment, description=description).arn
        logs = self._access_logs(environment)
        checkpoints = PrivateBucket(
            self,
            "checkpoints",
            name=spec.buckets.checkpoints,
            key_arn=key_arn,
            protect=spec.protect,
            expire_old_versions_after_days=EXPIRE_OLD_CHECKPOINTS_AFTER_DAYS,
            log_to=logs,
        )
        output = PrivateBucket(self, "output", name=spec.buckets.output, key_arn=key_arn, protect=spec.protect, log_to=logs)
        self.outputs = CheckpointsOutputs(
            checkpoints_bucket=checkpoints.name,
            checkpoints_bucket_arn=checkpoints.arn,
            output_bucket=output.name,
            output_bucket_arn=output.arn,
            key_arn=key_arn,
        )
        self.export(self.outputs)

    def _access_logs(self, environment: Environment) -> PrivateBucket:
        """S3 delivers access logs only to buckets with S3's own key."""
        spec = environment.spec
        name = access_logs_bucket(environment)
        return PrivateBucket(
            self,
            "access-logs",
            name=name,
            key_arn=None,
            protect=spec.protect,
            expire_old_versions_after_days=1,
            expire_after_days=EXPIRE_ACCESS_LOGS_AFTER_DAYS,
            statements=[_log_delivery(name, spec.account, aws.data_aws_partition.DataAwsPartition(self, "partition").partition)],
        )


def access_logs_bucket(environment: Environment) -> str:
    """The name of the bucket of access logs: the environment's own, or one that is unique per account and region.

    Args:
        environment: the environment of the stack.
    """
    spec = environment.spec
    return spec.buckets.access_logs or shortened(f"penstock-logs-{environment.name}-{spec.account}-{spec.region}", MAX_BUCKET_NAME)


def _log_delivery(bucket: str, account: str, partition: str) -> Statement:
    condition = {"StringEquals": {"aws:SourceAccount": account}}
    return allow_service("LogDelivery", LOG_DELIVERY_SERVICE, ["s3:PutObject"], [f"arn:{partition}:s3:::{bucket}/*"], condition)
