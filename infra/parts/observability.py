"""What is watched in an environment: logs, metrics, alarms and money."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from penstock.infra.parts.part import Arn, DurationMs, Email, Part, RetentionDays

_MINUTE_MS = 60_000
_DAY_MS = 86_400_000


def _alarm_period(ms: int) -> int:
    """Source: CloudWatch API reference, PutMetricAlarm: whole minutes, a day at the most."""
    if ms % _MINUTE_MS or not _MINUTE_MS <= ms <= _DAY_MS:
        raise ValueError("whole minutes from 1m to 24h")
    return ms


class OpenSearchDomain(Part):
    """An OpenSearch domain that the stacks make.

    Args:
        instance_type: of its nodes.
        instances: how many.
        storage_gib: of each node.
        version: of OpenSearch.
        service_role: whether the stacks make OpenSearch's service-linked role, or the account has it: it is one an account.
    """

    instance_type: str = "m7g.large.search"
    instances: Annotated[int, Field(ge=1, le=80)] = 3
    storage_gib: Annotated[int, Field(ge=10, le=16_384)] = 100
    version: Annotated[str, Field(pattern=r"^[0-9]+\.[0-9]+$")] = "2.19"
    service_role: Literal["create", "existing"] = "create"


class OpenSearch(Part):
    """Where the jobs' logs go beside CloudWatch: a domain that the stacks make, or one that is there.

    Args:
        domain: to be made.
        endpoint: of one that is there, ``https://...``.
        domain_arn: of the one that is there, if it is an Amazon OpenSearch Service domain: then requests are signed, and Fluent Bit's
            role may write to it; None: whoever reaches the endpoint may.
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
    """When somebody is told.

    Args:
        emails: who; none: the alarms stand in CloudWatch alone.
        lag_records: of a job behind its topics' ends.
        failed_batches: of a job in five minutes.
        restarts: of a job's driver in an hour.
        interruptions: of spot nodes in an hour.
        silent: time without a word of a driver, in ms; a job whose trigger is longer gets three triggers' time.
    """

    emails: list[Email] = []
    lag_records: Annotated[int, Field(ge=1)] = 1_000_000
    failed_batches: Annotated[int, Field(ge=1)] = 1
    restarts: Annotated[int, Field(ge=1)] = 3
    interruptions: Annotated[int, Field(ge=1)] = 10
    silent: Annotated[DurationMs, AfterValidator(_alarm_period)] = 600_000


class Observability(Part):
    """What is watched.

    Args:
        log_retention_days: of the jobs' logs.
        open_search: where the logs go beside CloudWatch; None: nowhere else.
        prometheus: ``none``, ``cluster`` for one within the cluster, ``workspace`` for one that also writes to a workspace of
            Amazon Managed Service for Prometheus.
        alarms: when somebody is told.
    """

    log_retention_days: RetentionDays = 30
    open_search: OpenSearch | None = None
    prometheus: Literal["none", "cluster", "workspace"] = "cluster"
    alarms: Alarms = Alarms()


class MonthlyBudget(Part):
    """An AWS budget over the environment's tagged costs.

    Args:
        monthly_usd: of the environment.
        emails: who is told at 80 % forecast and at 100 % spent.
    """

    monthly_usd: Annotated[float, Field(gt=0)]
    emails: Annotated[list[Email], Field(min_length=1, max_length=10)]
