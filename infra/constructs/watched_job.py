"""A job in CloudWatch: its log group, the metrics extracted from it, and its alarms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from constructs import Construct

from penstock.infra.aws_bindings import aws
from penstock.infra.environment import Environment
from penstock.infra.job_alarms import JOB_DIMENSION, JOB_FIELD, METRICS, Alarm, namespace


class WatchedJob(Construct):
    """The log group, metric filters and alarms of one job, or of a session.

    Args:
        scope: the stack.
        id: the job's name.
        environment: the environment of the stack.
        log_group: the group's name.
        key_arn: the KMS key's ARN.
        alarms: of the job.
        topic_arn: SNS topic of the alarms.
        members: job of a session -> its alarms; None: it is a job.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        environment: Environment,
        log_group: str,
        key_arn: str,
        alarms: Sequence[Alarm],
        topic_arn: str,
        members: Mapping[str, Sequence[Alarm]] | None = None,
    ) -> None:
        super().__init__(scope, id)
        self._job = id
        self._namespace = namespace(environment.name)
        group = self._group("logs", id, log_group, environment, key_arn)
        self.log_group_arn: str = group.arn
        # Has what the job has written outside of the session; without it a move would destroy that.
        for job in members or {}:
            self._group(f"logs-{job}", job, f"{log_group.rpartition('/')[0]}/{job}", environment, key_arn)
        self._filters(group.name)
        for job, own in {id: alarms, **(members or {})}.items():
            for alarm in own:
                self._alarm(job, alarm, environment.prefix, topic_arn)

    def _group(self, id: str, job: str, name: str, environment: Environment, key_arn: str) -> Any:
        group = aws.cloudwatch_log_group.CloudwatchLogGroup(
            self,
            id,
            name=name,
            retention_in_days=environment.spec.observability.log_retention_days,
            # Not protected by Terraform, which would then refuse an environment without the job whatever the user says: `penstock deploy`
            # asks before it deletes a group with its records (--allow-loss).
            kms_key_id=key_arn,
        )
        group.override_logical_id(job)
        return group

    def _filters(self, log_group: str) -> None:
        module = aws.cloudwatch_log_metric_filter
        for metric in METRICS:
            id = f"{self._job}-{metric.name}"
            # A metric filter with a dimension cannot have a default value: records that do not match are ignored.
            transformation = module.CloudwatchLogMetricFilterMetricTransformation(
                name=metric.name, namespace=self._namespace, value=metric.value, dimensions={JOB_DIMENSION: f"$.{JOB_FIELD}"}
            )
            module.CloudwatchLogMetricFilter(
                self, metric.name, name=id, log_group_name=log_group, pattern=metric.pattern, metric_transformation=transformation
            ).override_logical_id(id)

    def _alarm(self, job: str, alarm: Alarm, prefix: str, topic_arn: str) -> None:
        id = f"{job}-{alarm.kind}"
        aws.cloudwatch_metric_alarm.CloudwatchMetricAlarm(
            self,
            alarm.kind if job == self._job else id,
            alarm_name=f"{prefix}-{id}",
            alarm_description=f"{job}: {alarm.description}",
            namespace=self._namespace,
            metric_name=alarm.metric.name,
            dimensions={JOB_DIMENSION: job},
            statistic=alarm.statistic,
            period=alarm.period_s,
            evaluation_periods=alarm.periods,
            comparison_operator=alarm.comparison,
            threshold=alarm.threshold,
            treat_missing_data=alarm.missing,
            alarm_actions=[topic_arn],
            ok_actions=[topic_arn],
        ).override_logical_id(id)
