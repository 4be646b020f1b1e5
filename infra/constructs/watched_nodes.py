"""The nodes of an environment in CloudWatch: the log group of Karpenter, and the alarms for pods without a node."""

from __future__ import annotations

from collections.abc import Mapping

from constructs import Construct

from penstock.infra.aws_bindings import aws
from penstock.infra.environment import Environment
from penstock.infra.job_alarms import Alarm, namespace
from penstock.infra.node_alarms import (
    BEYOND_LIMITS,
    EKS_CLUSTER_DIMENSION,
    EKS_NAMESPACE,
    limits_alarm,
    log_group,
    pending_alarm,
    pending_minutes,
)


class WatchedNodes(Construct):
    """Log group, metric filter and alarms.

    Args:
        scope: the stack.
        id: unique in the stack.
        environment: the environment of the stack, with nodes.
        cluster_name: of the EKS cluster.
        karpenter: whether Karpenter is the stacks' own; the log of an existing cluster's is its owners'.
        key_arn: the KMS key's ARN.
        topic_arn: SNS topic of the alarms.
    """

    def __init__(
        self, scope: Construct, id: str, *, environment: Environment, cluster_name: str, karpenter: bool, key_arn: str, topic_arn: str
    ) -> None:
        super().__init__(scope, id)
        spec, name = environment.spec, environment.name
        assert spec.nodes is not None
        self._prefix, self._topic_arn = environment.prefix, topic_arn
        pending = pending_alarm(name, pending_minutes(spec.observability.alarms, spec.nodes))
        self._alarm(pending, EKS_NAMESPACE, {EKS_CLUSTER_DIMENSION: cluster_name})
        self.log_group: str | None = None
        self.log_group_arn: str | None = None
        if karpenter:
            self._karpenter(environment, id, key_arn)

    def _karpenter(self, environment: Environment, id: str, key_arn: str) -> None:
        name, retention = environment.name, environment.spec.observability.log_retention_days
        group = aws.cloudwatch_log_group.CloudwatchLogGroup(
            self, "logs", name=log_group(name), retention_in_days=retention, kms_key_id=key_arn
        )
        group.override_logical_id(id)
        self.log_group, self.log_group_arn = group.name, group.arn
        self._filter(group.name, namespace(name))
        self._alarm(limits_alarm(name), namespace(name), {})

    def _filter(self, log_group_name: str, metrics: str) -> None:
        module = aws.cloudwatch_log_metric_filter
        transformation = module.CloudwatchLogMetricFilterMetricTransformation(
            name=BEYOND_LIMITS.name, namespace=metrics, value=BEYOND_LIMITS.value
        )
        module.CloudwatchLogMetricFilter(
            self,
            "limits",
            name="pool-limits",
            log_group_name=log_group_name,
            pattern=BEYOND_LIMITS.pattern,
            metric_transformation=transformation,
        ).override_logical_id("pool-limits")

    def _alarm(self, alarm: Alarm, metrics: str, dimensions: Mapping[str, str]) -> None:
        aws.cloudwatch_metric_alarm.CloudwatchMetricAlarm(
            self,
            alarm.kind,
            alarm_name=f"{self._prefix}-{alarm.kind}",
            alarm_description=alarm.description,
            namespace=metrics,
            metric_name=alarm.metric.name,
            dimensions=dict(dimensions) or None,
            statistic=alarm.statistic,
            period=alarm.period_s,
            evaluation_periods=alarm.periods,
            comparison_operator=alarm.comparison,
            threshold=alarm.threshold,
            treat_missing_data=alarm.missing,
            alarm_actions=[self._topic_arn],
            ok_actions=[self._topic_arn],
        ).override_logical_id(alarm.kind)
