"""Access of CloudWatch Logs to a KMS key that encrypts log groups."""

from __future__ import annotations

from penstock.infra.environment import Environment
from penstock.infra.policies import Condition


def log_group_arn(environment: Environment, partition: str, name: str) -> str:
    """The ARN of a log group, computed before it is created because its key's policy names it.

    Args:
        environment: source of account and region.
        partition: of AWS, such as ``aws``.
        name: of the log group.
    """
    return f"arn:{partition}:logs:{environment.spec.region}:{environment.spec.account}:log-group:{name}"


def logs_service(environment: Environment, dns_suffix: str, *arns: str) -> tuple[str, Condition]:
    """The principal that encrypts log groups, and the condition under which it may use a key: for certain groups alone.

    Source: Amazon CloudWatch Logs User Guide, "Encrypt log data in CloudWatch Logs using AWS Key Management Service".

    Args:
        environment: source of the region.
        dns_suffix: of the partition, such as ``amazonaws.com``.
        arns: of the log groups.
    """
    return f"logs.{environment.spec.region}.{dns_suffix}", {"ArnEquals": {"kms:EncryptionContext:aws:logs:arn": list(arns)}}
