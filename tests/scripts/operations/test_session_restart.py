"""What a change of a job means for the session that it runs in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.infra.plans import plans
from penstock.scripts.operations.session_restart import said
from tests.infra.sessions_of_jobs import EXECUTOR, environment_with

AB = {"name": "shared", "jobs": ["a", "b"]}
ROOMY = {"executor": {**EXECUTOR, "memory": "16g", "ephemeralStorage": "20g"}}


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
    (tmp_path / "before").mkdir()
    old = plans(environment_with(tmp_path / "before", [], {"a": {**ROOMY, **before}})).jobs[0].plan
    environment = environment_with(tmp_path, [AB], {"a": ROOMY, "b": ROOMY, "c": ROOMY})
    planned = plans(environment)
    (note,) = said(planned, environment, "a", old, new_image=new_image)
    assert expected in note
    assert said(planned, environment, "c", old, new_image=new_image) == ()
