"""The observability stack: logs, metrics, alarms and the budget. The collectors are in the observability-charts stack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from constructs import Construct

from penstock.infra.aws_bindings import aws
from penstock.infra.constructs.aws_stack import AwsStack
from penstock.infra.constructs.encryption_key import EncryptionKey
from penstock.infra.constructs.log_search import LogSearch
from penstock.infra.constructs.role import Role, pod_identity_trust
from penstock.infra.constructs.watched_job import WatchedJob
from penstock.infra.constructs.watched_nodes import WatchedNodes
from penstock.infra.environment import Environment
from penstock.infra.job_alarms import job_alarms
from penstock.infra.log_encryption import log_group_arn, logs_service
from penstock.infra.manifests import fluent_bit, prometheus
from penstock.infra.plans import EnvironmentPlans, SessionOfJobs
from penstock.infra.policies import Statement, allow, allow_service, document, tls_only

STACK = "observability"
ALARMS_SERVICE = "cloudwatch.amazonaws.com"
# The karpenter stack's rule of that name, one of `penstock.infra.interruptions.EVENTS`.
SPOT_INTERRUPTION_RULE = "spot-interruption"
# A message of the interruption queue is useless once its instance is gone, 2 minutes after the warning.
UNREAD_AFTER_S = 120
# Shares of the monthly budget at which notifications are sent. Source: AWS Cost Management User Guide, "Creating a budget".
FORECAST_PERCENT, SPENT_PERCENT = 80, 100


class Network(Protocol):
    """The outputs of the network stack that this stack uses."""

    @property
    def vpc_id(self) -> str:
        """The VPC."""

    @property
    def private_subnet_ids(self) -> tuple[str, ...]:
        """One per zone."""


class Cluster(Protocol):
    """The outputs of the cluster stack that this stack uses."""

    @property
    def cluster_name(self) -> str:
        """Name of the EKS cluster."""

    @property
    def node_security_group_ids(self) -> tuple[str, ...]:
        """Security groups of its nodes."""


class Karpenter(Protocol):
    """The outputs of the karpenter stack that this stack uses."""

    @property
    def interruption_queue(self) -> str | None:
        """The queue's name; None: it is that of a Karpenter that the cluster has, whose owners monitor it."""


@dataclass(frozen=True)
class ObservabilityOutputs:
    """Outputs for other stacks.

    Args:
        log_group: prefix of the names of the jobs' log groups; a slash and a job's name follow.
        karpenter_log_group: the log group of Karpenter; None: there is no cluster, or it has a Karpenter.
        fluent_bit_role_arn: the role that Fluent Bit's pods assume; None: there is no cluster.
        open_search_endpoint: host of the OpenSearch domain or endpoint of the logs; None: there is none.
        prometheus_endpoint: URL of the workspace that Prometheus writes to; None: there is none.
        alarm_topic_arn: SNS topic of the alarms.
    """

    log_group: str
    karpenter_log_group: str | None
    fluent_bit_role_arn: str | None
    open_search_endpoint: str | None
    prometheus_endpoint: str | None
    alarm_topic_arn: str


class ObservabilityStack(AwsStack):
    """Log groups, metrics and alarms of the jobs, log search, and the roles that write to them.

    Args:
        scope: the app.
        environment: the environment of the stack.
        plans: of its jobs.
        network: for an OpenSearch domain; None: there is no cluster.
        cluster: whose pods write logs and metrics; None: there is none.
        karpenter: whose interruptions are monitored; None: there is no cluster.
    """

    def __init__(
        self,
        scope: Construct,
        environment: Environment,
        plans: EnvironmentPlans,
        network: Network | None,
        cluster: Cluster | None,
        karpenter: Karpenter | None,
    ) -> None:
        super().__init__(scope, STACK, environment)
        self._spec = environment.spec.observability
        self._log_group = f"/penstock/{environment.name}/jobs"
        partition = aws.data_aws_partition.DataAwsPartition(self, "partition")
        self._partition: str = partition.partition
        self._dns_suffix: str = partition.dns_suffix
        key_arn = self._key()
        topic_arn = self._topic(key_arn)
        jobs = [self._job(job.name, job.spec.job.spec.trigger, key_arn, topic_arn) for job in plans.apart]
        jobs += [self._session(plans, session, key_arn, topic_arn) for session in plans.sessions]
        if karpenter is not None and karpenter.interruption_queue is not None:
            self._interruptions(karpenter.interruption_queue, topic_arn)
        nodes = self._nodes(cluster, key_arn, topic_arn)
        log_groups = [job.log_group_arn for job in jobs]
        if nodes is not None and nodes.log_group_arn is not None:
            log_groups.append(nodes.log_group_arn)
        search = self._search(network, cluster, key_arn)
        workspace = self._workspace(key_arn)
        self._budget()
        self.outputs = ObservabilityOutputs(
            log_group=self._log_group,
            karpenter_log_group=nodes.log_group if nodes is not None else None,
            fluent_bit_role_arn=self._fluent_bit_role(cluster, log_groups, search),
            open_search_endpoint=self._search_endpoint(search),
            prometheus_endpoint=self._prometheus_endpoint(cluster, workspace),
            alarm_topic_arn=topic_arn,
        )
        self.export(self.outputs)

    def _key(self) -> str:
        """The key of logs, alarms and metrics."""
        spec = self.environment.spec
        groups = log_group_arn(self.environment, self._partition, f"/penstock/{self.environment.name}/*")
        services = [
            logs_service(self.environment, self._dns_suffix, groups),
            (ALARMS_SERVICE, {"StringEquals": {"aws:SourceAccount": spec.account}}),
        ]
        description = f"Logs and alarms of {self.environment.prefix}"
        return EncryptionKey(self, "key", self.environment, description=description, services=services).arn

    def _topic(self, key_arn: str) -> str:
        """The topic of the alarms. Alarms of other accounts cannot publish to it, and requests without TLS are denied."""
        name = f"{self.environment.prefix}-alarms"
        topic = aws.sns_topic.SnsTopic(self, "alarms", name=name, kms_master_key_id=key_arn)
        ours = {"StringEquals": {"aws:SourceAccount": self.environment.spec.account}}
        statements = [
            allow_service("Alarms", ALARMS_SERVICE, ["sns:Publish"], [topic.arn], ours),
            tls_only("sns:Publish", [topic.arn]),
        ]
        aws.sns_topic_policy.SnsTopicPolicy(self, "alarms-policy", arn=topic.arn, policy=document(statements))
        for email in self._spec.alarms.emails:
            subscription = aws.sns_topic_subscription.SnsTopicSubscription
            subscription(self, f"alarms-{email}", topic_arn=topic.arn, protocol="email", endpoint=email)
        arn: str = topic.arn
        return arn

    def _job(self, name: str, trigger: int | Literal["availableNow"], key_arn: str, topic_arn: str) -> WatchedJob:
        return WatchedJob(
            self,
            name,
            environment=self.environment,
            log_group=f"{self._log_group}/{name}",
            key_arn=key_arn,
            alarms=job_alarms(trigger, self._spec.alarms),
            topic_arn=topic_arn,
        )

    def _session(self, plans: EnvironmentPlans, session: SessionOfJobs, key_arn: str, topic_arn: str) -> WatchedJob:
        """One log group, with the alarms of each job."""
        return WatchedJob(
            self,
            session.name,
            environment=self.environment,
            log_group=f"{self._log_group}/{session.name}",
            key_arn=key_arn,
            alarms=(),
            topic_arn=topic_arn,
            members={job.name: job_alarms(job.spec.job.spec.trigger, self._spec.alarms) for job in plans.jobs_of(session)},
        )

    def _nodes(self, cluster: Cluster | None, key_arn: str, topic_arn: str) -> WatchedNodes | None:
        if cluster is None:
            return None
        return WatchedNodes(
            self,
            # An underscore, because a job's name has none and is an id in this stack.
            "karpenter_nodes",
            environment=self.environment,
            cluster_name=cluster.cluster_name,
            karpenter=self.environment.own_karpenter,
            key_arn=key_arn,
            topic_arn=topic_arn,
        )

    def _interruptions(self, queue: str, topic_arn: str) -> None:
        """Alarms on interrupted instances, and on warnings that Karpenter does not read. Without events there are no data, which is not
        an alarm.
        """
        limit = self._spec.alarms.interruptions
        common = {"treat_missing_data": "notBreaching", "alarm_actions": [topic_arn], "ok_actions": [topic_arn]}
        beyond = {"comparison_operator": "GreaterThanThreshold", **common}
        alarm = aws.cloudwatch_metric_alarm.CloudwatchMetricAlarm
        alarm(
            self,
            "interruptions",
            alarm_name=f"{self.environment.prefix}-interruptions",
            alarm_description=f"more than {limit} spot machines of the account have been called back within an hour",
            namespace="AWS/Events",
            metric_name="TriggeredRules",
            dimensions={"RuleName": f"{self.environment.prefix}-{SPOT_INTERRUPTION_RULE}"},
            statistic="Sum",
            period=3600,
            evaluation_periods=1,
            threshold=limit,
            **beyond,
        )
        alarm(
            self,
            "interruptions-unread",
            alarm_name=f"{self.environment.prefix}-interruptions-unread",
            alarm_description="Karpenter does not read its interruption queue: machines go without their pods being moved before",
            namespace="AWS/SQS",
            metric_name="ApproximateAgeOfOldestMessage",
            dimensions={"QueueName": queue},
            statistic="Maximum",
            period=60,
            evaluation_periods=3,
            threshold=UNREAD_AFTER_S,
            **beyond,
        )

    def _search(self, network: Network | None, cluster: Cluster | None, key_arn: str) -> LogSearch | None:
        asked = self._spec.open_search
        if asked is None or asked.domain is None or network is None or cluster is None:
            return None
        return LogSearch(
            self,
            "logs",
            environment=self.environment,
            domain=asked.domain,
            key_arn=key_arn,
            vpc_id=network.vpc_id,
            subnet_ids=network.private_subnet_ids,
            client_security_group_ids=cluster.node_security_group_ids,
        )

    def _search_endpoint(self, search: LogSearch | None) -> str | None:
        asked = self._spec.open_search
        if search is not None:
            return search.endpoint
        return asked.endpoint.removeprefix("https://").rstrip("/") if asked is not None and asked.endpoint is not None else None

    def _fluent_bit_role(self, cluster: Cluster | None, log_groups: Sequence[str], search: LogSearch | None) -> str | None:
        """The role of Fluent Bit's pods: may only write to the jobs' and Karpenter's log groups and to OpenSearch's bulk API."""
        if cluster is None:
            return None
        statements: list[Statement] = []
        if log_groups:
            streams = [f"{arn}:log-stream:*" for arn in log_groups]
            statements.append(allow("JobLogs", ["logs:CreateLogStream", "logs:PutLogEvents"], streams))
        asked = self._spec.open_search
        domain = search.arn if search is not None else asked.domain_arn if asked is not None else None
        if domain is not None:
            statements.append(allow("JobIndexes", ["es:ESHttpPost"], [f"{domain}/_bulk"]))
        return self._pod_role("fluent-bit", cluster, fluent_bit.NAMESPACE, fluent_bit.SERVICE_ACCOUNT, statements)

    def _workspace(self, key_arn: str) -> tuple[str, str] | None:
        """ARN and endpoint of a workspace of Amazon Managed Service for Prometheus."""
        if self._spec.prometheus != "workspace":
            return None
        workspace = aws.prometheus_workspace.PrometheusWorkspace(self, "metrics", alias=self.environment.prefix, kms_key_arn=key_arn)
        return workspace.arn, workspace.prometheus_endpoint

    def _prometheus_endpoint(self, cluster: Cluster | None, workspace: tuple[str, str] | None) -> str | None:
        if workspace is None:
            return None
        arn, endpoint = workspace
        if cluster is not None:
            statements = [allow("RemoteWrite", ["aps:RemoteWrite"], [arn])]
            self._pod_role("prometheus", cluster, prometheus.NAMESPACE, prometheus.SERVICE_ACCOUNT, statements)
        return endpoint

    def _pod_role(self, id: str, cluster: Cluster, namespace: str, service_account: str, statements: Sequence[Statement]) -> str:
        """A role for the pods of one service account."""
        name = f"{self.environment.prefix}-{id}"
        role = Role(self, id, name=name, trusted=pod_identity_trust(self.environment, self._partition), statements=statements)
        association = aws.eks_pod_identity_association.EksPodIdentityAssociation
        association(
            self,
            f"{id}-identity",
            cluster_name=cluster.cluster_name,
            namespace=namespace,
            service_account=service_account,
            role_arn=role.arn,
        )
        return role.arn

    def _budget(self) -> None:
        """Over resources with the environment's tag, once the account has activated it as a cost allocation tag."""
        asked = self.environment.spec.budget
        if asked is None:
            return
        module = aws.budgets_budget
        notifications = [
            module.BudgetsBudgetNotification(
                notification_type=kind,
                comparison_operator="GREATER_THAN",
                threshold=percent,
                threshold_type="PERCENTAGE",
                subscriber_email_addresses=list(asked.emails),
            )
            for kind, percent in (("FORECASTED", FORECAST_PERCENT), ("ACTUAL", SPENT_PERCENT))
        ]
        tagged = module.BudgetsBudgetCostFilter(name="TagKeyValue", values=[f"user:penstock:environment${self.environment.name}"])
        module.BudgetsBudget(
            self,
            "budget",
            name=self.environment.prefix,
            budget_type="COST",
            time_unit="MONTHLY",
            limit_amount=f"{asked.monthly_usd:.2f}",
            limit_unit="USD",
            cost_filter=[tagged],
            notification=notifications,
        )
