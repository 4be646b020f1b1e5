"""Sessions of an environment: which jobs may share a driver, and their plans."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.infra.environment import Environment
from penstock.infra.plans import plans
from penstock.infra.sessions import session_plans
from penstock.sizing.errors import PenstockError
from tests.infra.sessions_of_jobs import EXECUTOR, environment_with, file_with

AB = {"name": "shared", "jobs": ["a", "b"]}


def faults(environment: Environment) -> list[PenstockError]:
    with pytest.raises(PenstockError) as raised:
        plans(environment)
    return list(raised.value.errors)


def line(file: str, text: str) -> int:
    return next(number for number, row in enumerate(Path(file).read_text("utf-8").splitlines(), 1) if text in row)


def test_jobs_of_a_session_run_in_one_driver_and_the_others_in_their_own(tmp_path: Path) -> None:
    planned = plans(environment_with(tmp_path, [AB]))
    assert list(planned.workloads) == ["c", "shared"]
    assert [job.name for job in planned.apart] == ["c"]
    (session,) = planned.sessions
    assert [job.name for job in planned.jobs_of(session)] == ["a", "b"]
    assert planned.session_of("a") == session and planned.session_of("c") is None
    own = {job.name: job.plan for job in planned.jobs}
    assert session.plan.totals.executors == own["a"].totals.executors + own["b"].totals.executors
    assert planned.together is not None
    assert planned.together.pods == session.plan.totals.pods + own["c"].totals.pods
    alone = plans(environment_with(tmp_path, []))
    assert alone.together is not None and alone.together.pods == planned.together.pods + 1
    assert (alone.together.executors, alone.together.partitions) == (planned.together.executors, planned.together.partitions)


def test_a_session_may_be_given_a_driver(tmp_path: Path) -> None:
    planned = plans(environment_with(tmp_path, [{**AB, "driver": {"cores": 4, "memory": "8g"}}]))
    driver = planned.sessions[0].plan.pods.driver
    assert (driver.request_cpu_millicores, driver.memory_mib) == (4000, 8192)
    (fault, _) = faults(environment_with(tmp_path, [{**AB, "driver": {"cores": 1, "memory": "2g"}}]))
    assert fault.code == "SIZ-062" and "shared" in fault.path


@pytest.mark.parametrize(
    ("sessions", "code", "text", "given"),
    [
        ([{"name": "shared", "jobs": ["a", "d"]}], "INF-080", "- d", "d"),
        ([AB, {"name": "other", "jobs": ["b"]}], "INF-081", "- b", "b"),
        ([{"name": "a", "jobs": ["b"]}], "INF-082", "name: a", "a"),
        ([AB, {"name": "shared", "jobs": ["c"]}], "INF-082", "name: shared", "shared"),
    ],
)
def test_a_session_that_cannot_be_is_refused_at_its_line(
    sessions: list[dict[str, Any]], code: str, text: str, given: str, tmp_path: Path
) -> None:
    environment = environment_with(tmp_path, sessions)
    (fault,) = faults(environment)
    assert (fault.code, fault.given) == (code, given)
    assert fault.at is not None and fault.at.line is not None
    rows = Path(fault.at.file).read_text("utf-8").splitlines()
    assert text in rows[fault.at.line - 1]


def test_a_bounded_job_is_in_no_session(tmp_path: Path) -> None:
    source = {"kafka": {"topic": "a-in", "startingOffsets": "earliest"}, "time": {"field": "at", "outOfOrderness": "10s"}}
    bounded = {"trigger": "availableNow", "sources": {"in": source}}
    (fault,) = faults(environment_with(tmp_path, [AB], {"a": bounded, "b": {}}))
    assert (fault.code, fault.given) == ("INF-083", "a")


def test_the_spark_operator_has_no_sessions(tmp_path: Path) -> None:
    environment = environment_with(tmp_path, [AB])
    assert environment.spec.eks is not None
    eks = environment.spec.eks.model_copy(update={"spark_operator": True})
    assert [fault.code for fault in faults(environment.with_spec(eks=eks))] == ["INF-084"]


@pytest.mark.parametrize(
    "session",
    [{"name": "s" * 46, "jobs": ["a"]}, {"name": "Shared", "jobs": ["a"]}, {"name": "shared", "jobs": []}, {**AB, "jobs": ["a", "a"]}],
)
def test_names_of_sessions_are_as_those_of_jobs_and_they_have_each_job_once(session: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(PenstockError) as raised:
        environment_with(tmp_path, [session])
    assert {error.code for error in raised.value.errors} <= {"SPEC-006", "SPEC-007"}


def test_what_the_jobs_of_a_session_can_not_share_is_said_at_the_line_of_the_session(tmp_path: Path) -> None:
    jobs = {"a": {}, "b": {"executor": {**EXECUTOR, "slots": 2}}}
    file = file_with(tmp_path, [AB], jobs)
    (fault,) = faults(environment_with(tmp_path, [AB], jobs))
    assert fault.code == "SIZ-060" and fault.path == "session shared: b"
    assert fault.at is not None and fault.at.line == line(str(file), "name: shared")


def test_a_session_of_which_a_command_plans_some_jobs_is_left_out(tmp_path: Path) -> None:
    environment = environment_with(tmp_path, [AB, {"name": "other", "jobs": ["c"]}])
    own = {job.name: job.plan for job in plans(environment).jobs}
    assert list(session_plans(environment, {"a": own["a"], "c": own["c"]}, None)) == ["other"]


def _with_metrics(folder: Path, jobs: dict[str, str], outputs: str) -> Environment:
    """A session of jobs, each with one further sink; the app of the first one writes these outputs."""
    (first, sink), *_ = jobs.items()
    changes = {}
    for job, further in jobs.items():
        sinks = {name: {"kafka": {"topic": f"{job}-{name}"}} for name in ("out", further, "errors", "late")}
        changes[job] = {"sinks": sinks}
    environment = environment_with(folder, [{"name": "shared", "jobs": list(jobs)}], changes)
    build = f'def build(job):\n    rows = job.source("in")\n{outputs.replace("SINK", sink)}'
    (folder / f"{first}_app.py").write_text(f"PARALLELISM = 4\n\n\n{build}", "utf-8")
    return environment


TWO = '    job.write(rows, "out")\n    job.write(rows, "SINK")\n'
ONE = '    job.write(rows, {"out": None, "SINK": None})\n'


@pytest.mark.parametrize(
    "jobs",
    [
        pytest.param({"a": "b-c", "a-b": "c"}, id="of the same name"),
        pytest.param({"a": "b", "a-b": "c"}, id="that of the other's first query"),
        pytest.param({"a": "b-d", "a-b": "c"}, id="beginning as the other's"),
    ],
)
def test_queries_whose_metrics_would_be_taken_for_another_jobs_are_refused_at_the_line_of_the_job(
    jobs: dict[str, str], tmp_path: Path
) -> None:
    (fault,) = faults(_with_metrics(tmp_path, jobs, TWO))
    assert fault.code == "INF-088" and fault.given == f"a with the sink {jobs['a']}, and a-b"
    assert fault.at is not None and fault.at.line is not None
    assert Path(fault.at.file).read_text("utf-8").splitlines()[fault.at.line - 1].strip() == "- a"


@pytest.mark.parametrize(
    ("jobs", "outputs"),
    [
        pytest.param({"a": "b-c", "a-b": "c"}, ONE, id="one query, named as the job"),
        pytest.param({"a": "bc", "a-b": "c"}, TWO, id="another word"),
        pytest.param({"a": "c", "a-b": "d"}, TWO, id="another sink"),
    ],
)
def test_jobs_of_similar_names_share_a_session(jobs: dict[str, str], outputs: str, tmp_path: Path) -> None:
    assert plans(_with_metrics(tmp_path, jobs, outputs)).sessions
