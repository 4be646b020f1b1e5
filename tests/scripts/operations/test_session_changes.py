"""What a deploy says of the sessions whose releases change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.scripts.operations.session_changes import rendered, session_changes
from penstock.scripts.provisioning.planned_changes import ResourceChange, StackChanges
from tests.infra.stacks.synthesized import Content
from tests.infra.stacks.test_sessions import JOBS, ROOMY, SESSION, released

AB = {"name": "shared", "jobs": ["a", "b"]}


def said(before: Content | None, after: Content | None) -> str:
    """The lines about a plan between two states of the stack of the releases."""
    found = {}
    for stack in (before, after):
        found[id(stack)] = {} if stack is None else stack["resource"]["helm_release"]
    old, new = found[id(before)], found[id(after)]
    actions = {(True, False): "destroy", (False, True): "create", (True, True): "change"}
    changes = [
        ResourceChange(f"helm_release.{name}", "helm_release", actions[name in old, name in new], (), old.get(name), new.get(name))
        for name in {*old, *new}
        if old.get(name) != new.get(name)
    ]
    return rendered(session_changes([StackChanges("jobs-charts", tuple(changes))]))


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Content:
    return released(tmp_path_factory.mktemp("before"), [SESSION])


ALL = "with all its jobs (a, b)"


@pytest.mark.parametrize(
    ("session", "jobs", "expected"),
    [
        ({**SESSION, "jobs": ["a", "b", "c"]}, JOBS, "adds c; no other job restarts"),
        ({**SESSION, "jobs": ["a"]}, JOBS, "takes out b; no other job restarts"),
        (
            {**SESSION, "jobs": ["a", "c"]},
            {**JOBS, "a": {**ROOMY, "trigger": "4s"}},
            "adds c; takes out b; changes a; no other job restarts",
        ),
        ({**SESSION, "driver": {"cores": 5, "memory": "8g"}}, JOBS, f"the driver restarts, {ALL}: another size of the driver"),
        (
            SESSION,
            {name: {"executor": {**ROOMY["executor"], "memory": "17g"}} for name in JOBS},
            f"changes a, b; the driver restarts, {ALL}: other executors",
        ),
        (AB, JOBS, f"the driver restarts, {ALL}: another size of the driver"),
        (SESSION, {name: {**ROOMY, "trigger": "10m"} for name in JOBS}, f"changes a, b; the driver restarts, {ALL}: another time to stop"),
        (
            SESSION,
            {name: {**ROOMY, "sparkConf": {"spark.hadoop.a": "1"}} for name in JOBS},
            f"changes a, b; the driver restarts, {ALL}: settings that its jobs share: spark.hadoop.a",
        ),
    ],
)
def test_it_says_which_jobs_change_and_what_restarts(
    before: Content, session: dict[str, Any], jobs: dict[str, dict[str, Any]], expected: str, tmp_path: Path
) -> None:
    assert said(before, released(tmp_path, [session], jobs)) == f"session shared: {expected}\n"


def test_a_session_begins_and_goes(before: Content, tmp_path: Path) -> None:
    apart = released(tmp_path, [])
    assert said(apart, before) == "session shared: begins with a, b\n"
    assert said(before, apart) == "session shared: goes, with a, b\n"
    assert said(before, before) == ""
