"""Whether a driver that has failed starts again: what each failure calls for, and when a job is stopped."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from penstock.jobs.driver.errors import QueryFailed
from penstock.jobs.driver.restart_policy import answer_to, failure_of, unrecorded_end, why_stopped
from penstock.jobs.spec.resources import Restart
from penstock.jobs.sql.errors import SqlRefused
from penstock.jobs.storage.driver_runs import Answer, DriverRun, Failure
from penstock.jobs.storage.generation import Fingerprint
from penstock.scripts.error_classes import error_classes
from penstock.sizing.errors import Place

WHAT = Fingerprint(app="a", spec="s", plan="p")
LIMIT = Restart.model_validate({"failures": 3, "within": "1m"})
BEGINNING = datetime(2026, 11, 25, 20, 0, tzinfo=UTC)
OWN_CODE = Place(file="/opt/penstock/app/team/clicks.py", line=12)


def _failure(answer: Answer, code: str = "JOB-005", where: str | None = None) -> Failure:
    return Failure(code=code, what="query failed", where=where, answer=answer)


def _run(failure: Failure | None, ended_s: float = 0, micro_batches: int = 0, pod_uid: str | None = None) -> DriverRun:
    ended = BEGINNING + timedelta(seconds=ended_s)
    return DriverRun(
        token=1,
        driver="pod clicks-driver-0",
        pod_uid=pod_uid,
        fingerprint=WHAT,
        started=BEGINNING,
        ended=ended,
        micro_batches=micro_batches,
        failure=failure,
    )


def _codes(answer: Answer) -> set[str]:
    return {kind.code for kind in error_classes("penstock.jobs") if kind.code.startswith("JOB-") and answer_to(kind()) == answer}


def test_each_error_has_its_answer() -> None:
    """The code's and the documents' table; an error that is new is limited until somebody has thought about it."""
    never = {"JOB-004", "JOB-011", "JOB-021", "JOB-062", "JOB-070", "JOB-085", "JOB-093", "JOB-094"}
    assert _codes("never") == never | {"JOB-097", "JOB-098", "JOB-099", "JOB-101", "JOB-105", "JOB-106", "JOB-109", "JOB-110", "JOB-113"}
    assert answer_to(SqlRefused()) == "never"
    assert _codes("unless-repeated") == {"JOB-003", "JOB-007", "JOB-055", "JOB-057"}
    always = {"JOB-001", "JOB-002", "JOB-008", "JOB-009", "JOB-010", "JOB-020", "JOB-022", "JOB-050", "JOB-051", "JOB-052", "JOB-053"}
    assert _codes("always") == always | {
        "JOB-080",
        "JOB-081",
        "JOB-082",
        "JOB-083",
        "JOB-086",
        "JOB-095",
        "JOB-096",
        "JOB-107",
        "JOB-108",
        "JOB-111",
        "JOB-112",
        "JOB-125",
    }
    assert {"JOB-005", "JOB-006", "JOB-090", "JOB-091"} <= _codes("limited")


def test_a_failed_query_is_the_teams_if_it_came_through_their_code() -> None:
    assert answer_to(QueryFailed(path="app", given="an executor was lost")) == "limited"
    failure = failure_of(QueryFailed(path="app", given="ZeroDivisionError: division by zero", at=OWN_CODE))
    assert (failure.answer, failure.where) == ("unless-repeated", "/opt/penstock/app/team/clicks.py:12")
    assert failure.what == "query failed (app): ZeroDivisionError: division by zero"


@pytest.mark.parametrize(
    ("uid_before", "uid_now", "answer"),
    [
        ("uid-1", "uid-1", "limited"),
        ("uid-1", "uid-2", "always"),
        ("uid-1", None, "always"),
        (None, None, "always"),
        (None, "uid-1", "always"),
    ],
)
def test_a_driver_that_recorded_no_end_was_killed_or_went_with_its_pod(uid_before: str | None, uid_now: str | None, answer: Answer) -> None:
    assert unrecorded_end(_run(None, pod_uid=uid_before), uid_now).answer == answer


@pytest.mark.parametrize(
    ("runs", "stopped"),
    [
        ([], False),
        ([_run(None)], False),
        ([_run(_failure("never"))], True),
        # What came before does not matter once a stop was graceful: somebody has started the job again.
        ([_run(_failure("never")), _run(None)], False),
        # However long an outage takes.
        ([_run(_failure("always"), second) for second in range(100)], False),
        ([_run(_failure("limited"), second) for second in range(3)], False),
        ([_run(_failure("limited"), second) for second in range(4)], True),
        ([_run(_failure("limited"), 20 * second) for second in range(4)], False),
        # An outage in between neither counts nor takes back what counts.
        ([_run(_failure("always" if second % 2 else "limited"), second) for second in range(7)], True),
        ([_run(_failure("always" if second % 2 else "limited"), second) for second in range(6)], False),
        # The third time at the same micro-batch.
        ([_run(_failure("unless-repeated"), micro_batches=count) for count in (5, 0)], False),
        ([_run(_failure("unless-repeated"), micro_batches=count) for count in (5, 0, 0)], True),
        ([_run(_failure("unless-repeated"), micro_batches=count) for count in (0, 5, 0)], False),
        ([_run(_failure("unless-repeated", where=f"app.py:{line}")) for line in (1, 1, 2)], False),
        ([_run(_failure("unless-repeated", code)) for code in ("JOB-003", "JOB-005", "JOB-005")], False),
        # Code that fails after micro-batches each time is limited as well.
        ([_run(_failure("unless-repeated"), second, micro_batches=1) for second in range(4)], True),
    ],
)
def test_a_job_is_stopped_by_what_comes_again(runs: Sequence[DriverRun], stopped: bool) -> None:
    assert (why_stopped(runs, LIMIT) is not None) == stopped


def test_no_failure_may_be_allowed() -> None:
    assert why_stopped([_run(_failure("limited"))], Restart(failures=0)) == "1 failures within 3600 s; spec.restart allows 0"
