from __future__ import annotations

import pytest

from penstock.infra.job_alarms import METRICS, Alarm, job_alarms, namespace
from penstock.infra.parts.observability import Alarms

LIMITS = Alarms.model_validate({"lagRecords": 500, "failedBatches": 2, "restarts": 4, "silent": "10m"})


def _alarm(kind: str, trigger: int = 10_000, limits: Alarms = LIMITS) -> Alarm:
    (selected,) = (alarm for alarm in job_alarms(trigger, limits) if alarm.kind == kind)
    return selected


def test_a_job_that_runs_for_ever_has_four_alarms() -> None:
    assert [alarm.kind for alarm in job_alarms(10_000, LIMITS)] == ["lag", "failed", "restarts", "silent"]


def test_a_bounded_run_has_none_for_silence() -> None:
    assert [alarm.kind for alarm in job_alarms("availableNow", LIMITS)] == ["lag", "failed", "restarts"]


def test_thresholds_are_the_environments() -> None:
    assert (_alarm("lag").threshold, _alarm("lag").comparison) == (500, "GreaterThanThreshold")
    assert (_alarm("failed").threshold, _alarm("failed").comparison) == (2, "GreaterThanOrEqualToThreshold")
    # The first start is not a restart: five starts are four restarts.
    assert (_alarm("restarts").threshold, _alarm("restarts").comparison) == (4, "GreaterThanThreshold")


def test_what_no_record_means_is_chosen_for_each() -> None:
    missing = {alarm.kind: alarm.missing for alarm in job_alarms(10_000, LIMITS)}
    assert missing == {"lag": "ignore", "failed": "notBreaching", "restarts": "notBreaching", "silent": "breaching"}


@pytest.mark.parametrize(
    ("trigger_ms", "seconds"), [(10_000, 600), (200_000, 600), (200_001, 660), (3_600_000, 10_800), (86_400_000, 86_400)]
)
def test_silence_is_longer_than_the_trigger_and_in_whole_minutes(trigger_ms: int, seconds: int) -> None:
    assert _alarm("silent", trigger_ms).period_s == seconds


def test_periods_are_such_as_cloudwatch_takes() -> None:
    for alarm in job_alarms(10_000, LIMITS):
        assert alarm.period_s % 60 == 0
        assert alarm.period_s * alarm.periods <= 86_400


def test_metrics_have_names_of_their_own_and_a_namespace_of_the_environments() -> None:
    assert len({metric.name for metric in METRICS}) == len(METRICS)
    assert namespace("production") == "Penstock/production"
