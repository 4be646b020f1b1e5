"""Metrics and alarms of a job in CloudWatch.

The metrics come from the driver's events (`penstock.jobs.driver.runtime`), which Fluent Bit sends to the job's log group as JSON with
the
job's name in the field ``job``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from penstock.infra.parts.observability import Alarms

# The field of each log record, and the dimension of each metric, that names the job.
JOB_FIELD = "job"
JOB_DIMENSION = "Job"
# A driver with an idle query emits an event every 10 s (spark.sql.streaming.noDataProgressEventInterval), an active one after each trigger.
TRIGGERS_OF_SILENCE = 3
_MINUTE_S, _FIVE_MINUTES_S, _HOUR_S, _DAY_S = 60, 300, 3600, 86_400

Missing = Literal["breaching", "notBreaching", "ignore"]


@dataclass(frozen=True)
class Metric:
    """A metric extracted from log records.

    Args:
        name: of the metric.
        pattern: a filter pattern of CloudWatch Logs that selects records.
        value: contribution of a record: a number or a field.
    """

    name: str
    pattern: str
    value: str


@dataclass(frozen=True)
class Alarm:
    """An alarm of a job.

    Args:
        kind: unique per job.
        description: what has happened, for the recipient of the alarm.
        metric: the metric to watch.
        statistic: over a period.
        period_s: seconds.
        periods: number of consecutive periods that must breach the threshold.
        comparison: CloudWatch's operator.
        threshold: in the metric's unit.
        missing: treatment of a period without data.
    """

    kind: str
    description: str
    metric: Metric
    statistic: Literal["Minimum", "Sum", "SampleCount"]
    period_s: int
    periods: int
    comparison: Literal["GreaterThanThreshold", "GreaterThanOrEqualToThreshold", "LessThanThreshold"]
    threshold: int
    missing: Missing


LAG = Metric("LagRecords", "{ $.lagRecords >= 0 }", "$.lagRecords")
FAILED = Metric("FailedBatches", '{ $.event = "failed" }', "1")
STARTS = Metric("Starts", '{ $.event = "starting" }', "1")
METRICS = (LAG, FAILED, STARTS)


def namespace(environment: str) -> str:
    """The CloudWatch namespace of an environment's metrics.

    Args:
        environment: its name.
    """
    return f"Penstock/{environment}"


def job_alarms(trigger: int | Literal["availableNow"], limits: Alarms) -> tuple[Alarm, ...]:
    """The alarms of a job.

    Args:
        trigger: of its spec, in ms; a bounded run is silent between its runs and has no alarm for silence.
        limits: of the environment.
    """
    always = (_lag(limits), _failed(limits), _restarts(limits))
    return always if trigger == "availableNow" else (*always, _silent(trigger, limits))


def _lag(limits: Alarms) -> Alarm:
    # The minimum over five minutes: a burst that the next micro-batch reads is not lag. A silent driver reports no lag, so silence neither
    # raises
    # nor clears this alarm; silence has its own.
    description = f"more than {limits.lag_records} records behind for 15 minutes"
    return Alarm("lag", description, LAG, "Minimum", _FIVE_MINUTES_S, 3, "GreaterThanThreshold", limits.lag_records, "ignore")


def _failed(limits: Alarms) -> Alarm:
    # No data means no failure.
    description = f"{limits.failed_batches} or more micro-batches have failed within 5 minutes"
    comparison: Literal["GreaterThanOrEqualToThreshold"] = "GreaterThanOrEqualToThreshold"
    return Alarm("failed", description, FAILED, "Sum", _FIVE_MINUTES_S, 1, comparison, limits.failed_batches, "notBreaching")


def _restarts(limits: Alarms) -> Alarm:
    # The first of a driver's starts within an hour is not a restart if it was deployed in that hour.
    description = f"the driver has begun more than {limits.restarts} times within an hour"
    return Alarm("restarts", description, STARTS, "Sum", _HOUR_S, 1, "GreaterThanThreshold", limits.restarts, "notBreaching")


def _silent(trigger_ms: int, limits: Alarms) -> Alarm:
    period_s = min(_DAY_S, max(limits.silent // 1000, _whole_minutes_s(TRIGGERS_OF_SILENCE * trigger_ms)))
    description = f"no word of the driver for {period_s // _MINUTE_S} minutes: it does not run, hangs, or its logs do not come through"
    return Alarm("silent", description, LAG, "SampleCount", period_s, 1, "LessThanThreshold", 1, "breaching")


def _whole_minutes_s(ms: int) -> int:
    return -(-ms // (_MINUTE_S * 1000)) * _MINUTE_S
