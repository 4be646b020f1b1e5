"""The observability of an environment: logs, metrics, alarms and budget."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from penstock.infra.parts.part import Arn, DurationMs, Email, Part, RetentionDays

_MINUTE_MS = 60_000
_DAY_MS = 86_400_000


def _alarm_period(ms: int) -> int:
    """Source: CloudWatch API reference, PutMetricAlarm: whole minutes, at most a day."""
    if ms % _MINUTE_MS or not _MINUTE_MS <= ms <= _DAY_MS:
        raise ValueError("whole minutes from 1m to 24h")
    return ms


class OpenSearchDomain(Part):
    """An OpenSearch domain that the stacks create.

    Args:
        instance_type: of its nodes.
        instances: number of nodes.
        storage_gib: of each node.
        version: of OpenSearch.
        service_role: whether the stacks create OpenSearch's service-linked role; false if the account has it, which has at most one.
    """

    instance_type: str = "m7g.large.search"
    instances: Annotated[int, Field(ge=1, le=80)] = 3
    storage_gib: Annotated[int, Field(ge=10, le=16_384)] = 100
    version: Annotated[str, Field(pattern=r"^[0-9]+\.[0-9]+$")] = "2.19"
    service_role: Literal["create", "existing"] = "create"


class OpenSearch(Part):
    """The destination of the jobs' logs in addition to CloudWatch: a new domain or an existing one.

    Args:
        domain: to be created.
        endpoint: of an existing one, ``https://...``.
        domain_arn: of the existing one, if it is an Amazon OpenSearch Service domain: then requests are signed, and Fluent Bit's
            role may write to it; None: requests are not signed, and every client that reaches the endpoint has access.
    """

    domain: OpenSearchDomain | None = None
    endpoint: Annotated[str, Field(pattern=r"^https://[A-Za-z0-9.-]+(:[0-9]{1,5})?/?$")] | None = None
    domain_arn: Arn | None = None

    @model_validator(mode="after")
    def _one_of_them(self) -> Self:
        if (self.domain is None) == (self.endpoint is None):
            raise ValueError("either a domain created by the stacks, or the endpoint of an existing one")
        if self.domain_arn is not None and self.endpoint is None:
            raise ValueError("domainArn only together with endpoint; that of a domain created by the stacks is known")
        return self


class Alarms(Part):
    """Thresholds and recipients of the alarms.

    Args:
        emails: recipients; empty: the alarms are only visible in CloudWatch.
        lag_records: of a job behind its topics' ends.
        failed_batches: of a job in five minutes.
        restarts: of a job's driver in an hour.
        interruptions: of spot nodes in an hour.
        silent: time without an event of a driver, in ms; for a job with a longer trigger, three triggers.
        pending: time for which a pod may wait for its node, in ms; None: three starts of a node.
    """

    emails: list[Email] = []
    lag_records: Annotated[int, Field(ge=1)] = 1_000_000
    failed_batches: Annotated[int, Field(ge=1)] = 1
    restarts: Annotated[int, Field(ge=1)] = 3
    interruptions: Annotated[int, Field(ge=1)] = 10
    silent: Annotated[DurationMs, AfterValidator(_alarm_period)] = 600_000
    pending: Annotated[DurationMs, AfterValidator(_alarm_period)] | None = None


class Observability(Part):
    """The observability settings.

    Args:
        log_retention_days: of the jobs' logs.
        open_search: destination of the logs in addition to CloudWatch; None: CloudWatch only.
        prometheus: ``none``, ``cluster`` for one within the cluster, ``workspace`` for one that also writes to a workspace of
            Amazon Managed Service for Prometheus.
        alarms: thresholds and recipients.
    """

    log_retention_days: RetentionDays = 30
    open_search: OpenSearch | None = None
    prometheus: Literal["none", "cluster", "workspace"] = "cluster"
    alarms: Alarms = Alarms()


class MonthlyBudget(Part):
    """An AWS budget over the environment's tagged costs.

    Args:
        monthly_usd: of the environment.
        emails: notified at 80 % forecast and at 100 % spent.
    """

    monthly_usd: Annotated[float, Field(gt=0)]
    emails: Annotated[list[Email], Field(min_length=1, max_length=10)]
