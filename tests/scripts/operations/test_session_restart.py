"""What a change of a job means for the session that it runs in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.infra.plans import plans
from penstock.scripts.operations.session_restart import said
from penstock.sizing.planned import Plan
from tests.infra.sessions_of_jobs import EXECUTOR, environment_with

AB = {"name": "shared", "jobs": ["a", "b"]}
ROOMY = {"executor": {**EXECUTOR, "memory": "16g", "ephemeralStorage": "20g"}}


def running(folder: Path, jobs: dict[str, dict[str, Any]]) -> dict[str, Plan]:
    """The plans of jobs as they run."""
    (folder / "before").mkdir()
    return {job.name: job.plan for job in plans(environment_with(folder / "before", [], jobs)).jobs}


@pytest.mark.parametrize(
    ("before", "new_image", "expected"),
    [
        ({}, False, "in session shared this job alone restarts"),
        ({"parallelism": 8}, False, "in session shared this job alone restarts"),
        ({"sparkConf": {"spark.sql.shuffle.partitions": "3"}}, False, "in session shared this job alone restarts"),
        ({}, True, "the driver of session shared restarts, with all its jobs (a, b): another image"),
        ({"driver": {"memory": "3g"}}, False, "restarts, with all its jobs (a, b): another size of the driver"),
        ({"sparkConf": {"spark.hadoop.a": "1"}}, False, "settings that its jobs share: spark.hadoop.a"),
    ],
)
def test_a_change_restarts_the_job_alone_or_the_driver_with_all_jobs_and_says_why(
    before: dict[str, Any], new_image: bool, expected: str, tmp_path: Path
) -> None:
    old = running(tmp_path, {"a": {**ROOMY, **before}, "b": ROOMY})
    environment = environment_with(tmp_path, [AB], {"a": ROOMY, "b": ROOMY, "c": ROOMY})
    planned = plans(environment)
    (note,) = said(planned, environment, "a", old, new_image=new_image)
    assert expected in note
    assert said(planned, environment, "c", old, new_image=new_image) == ()


@pytest.mark.parametrize(
    ("before", "driver", "expected"),
    [
        (["a"], None, "the driver of session shared restarts, with all its jobs (a, b): another size of the driver"),
        (["a", "b", "c"], None, "the driver of session shared restarts, with all its jobs (a, b): another size of the driver"),
        (["a"], {"cores": 4, "memory": "8g"}, "in session shared this job alone restarts"),
        (["a", "b", "c"], {"cores": 4, "memory": "8g"}, "in session shared this job alone restarts"),
    ],
)
def test_jobs_that_are_added_or_taken_out_restart_the_driver_unless_it_has_room(
    before: list[str], driver: dict[str, Any] | None, expected: str, tmp_path: Path
) -> None:
    old = running(tmp_path, dict.fromkeys(before, ROOMY))
    environment = environment_with(tmp_path, [{**AB, **({} if driver is None else {"driver": driver})}], dict.fromkeys("abc", ROOMY))
    assert said(plans(environment), environment, "a", old, new_image=False) == (expected,)


def test_of_a_session_that_does_not_run_yet_nothing_is_said(tmp_path: Path) -> None:
    environment = environment_with(tmp_path, [AB], {"a": ROOMY, "b": ROOMY})
    assert said(plans(environment), environment, "a", {}, new_image=False) == ()
