"""A job whose failures come again is not started again as it is: the driver says so before its queries start."""

from __future__ import annotations

import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from penstock.jobs.driver.errors import JobStopped, QueryFailed
from penstock.jobs.spec import load
from penstock.jobs.storage.driver_runs import DriverRun, DriverRunsFile
from penstock.jobs.stream.errors import QuarantineLimitReached
from penstock.scripts.operations.job_status import JobStatus, status_of
from penstock.sizing.errors import PenstockError
from tests.jobs.spark.running import CHECKPOINTS, Surroundings, TestedJob

# A function of the workers is sent to them with the job.
_APP = """
from pyspark.sql import functions as F


def build(job):
    def shortened(name):
        return "x" * (2 // len(name))

    rows = job.source("a", "key STRING NOT NULL, at STRING, name STRING").df
    job.write(rows.select(F.udf(shortened, "string")("name").alias("name"), "event_time"), "out")
    job.side_output("errors")
    job.side_output("late", "late")
"""


@pytest.fixture
def job(surroundings: Surroundings, monkeypatch: pytest.MonkeyPatch) -> TestedJob:
    _app(surroundings).write_text(_APP, encoding="utf-8")
    monkeypatch.syspath_prepend(str(surroundings.folder))
    return surroundings.job(_app(surroundings).stem, sources={"a": 1})


def _app(surroundings: Surroundings) -> Path:
    return Path(surroundings.folder) / f"divides_{surroundings.folder.name.replace('-', '_')}.py"


def _row(name: str) -> dict[str, object]:
    return {"key": "k", "at": "2025-04-05T12:30:01Z", "name": name}


def _runs(job: TestedJob) -> tuple[DriverRun, ...]:
    return DriverRunsFile(f"s3a://{CHECKPOINTS}/{job.name}").read().runs


def _status(job: TestedJob) -> JobStatus:
    return status_of(load(job.spec), CHECKPOINTS, job.around.s3, datetime.now(UTC))


def _failing(job: TestedJob, kind: type[PenstockError]) -> None:
    with pytest.raises(kind), job.running() as running:
        running.wait("never")


def test_code_that_fails_at_the_same_record_is_tried_three_times(
    job: TestedJob, surroundings: Surroundings, monkeypatch: pytest.MonkeyPatch
) -> None:
    job.feed("a", _row("a"))
    with job.running() as running:
        running.until_read({"a": [1]})
        status = _status(job)
        (query,) = status.queries
        assert (status.state, status.generation, query.micro_batch, query.total_records_in) == ("running", 1, 0, 1)
    assert _status(job).state == "stopped"
    assert [(run.micro_batches, run.failure) for run in _runs(job)] == [(1, None)]

    job.feed("a", _row(""))
    for _ in range(3):
        _failing(job, QueryFailed)
    failures = [run.failure for run in _runs(job)[1:]]
    assert {(failure.code, failure.answer) for failure in failures if failure} == {("JOB-005", "unless-repeated")}
    assert all(failure and failure.where and failure.where.endswith(".py:7") for failure in failures)

    began: list[bool] = []
    _failing(replace(job, on={"generation": lambda: began.append(True)}), JobStopped)
    assert not began and len(_runs(job)) == 4
    assert _status(job).state == "failed"

    # Somebody lets it try again, and corrects the app then.
    job.edit(lambda spec: spec.update(restartNonce=1))
    _failing(job, QueryFailed)
    _app(surroundings).write_text(_APP.replace("2 // len(name)", "2 // (len(name) + 1)"), encoding="utf-8")
    # The next driver is another process.
    monkeypatch.delitem(sys.modules, _app(surroundings).stem)
    with job.running() as running:
        running.until_read({"a": [2]})
    assert [row["name"] for row in job.rows()] == ["xx", "xx"]


def test_data_that_the_spec_does_not_allow_stops_the_job_at_once(job: TestedJob) -> None:
    def limit(spec: dict[str, Any]) -> None:
        spec["quarantine"] = {"share": 0.5, "records": 1}

    job.edit(limit)
    job.feed("a", b"not JSON")
    _failing(job, QuarantineLimitReached)
    _failing(job, JobStopped)
    job.edit(lambda spec: spec.pop("quarantine"))
    with job.running() as running:
        running.until_read({"a": [1]})
