from __future__ import annotations

from pathlib import Path

import pytest

from penstock.scripts.layout import ROOT
from penstock.testing.errors import WrongNumbers
from penstock.testing.plans import AssertPlan, assertion

SPEC = "jobs/specs/word_count.yaml"


@pytest.fixture
def assert_plan() -> AssertPlan:
    return assertion(ROOT)


def test_numbers_that_a_plan_has_pass(assert_plan: AssertPlan) -> None:
    conf = {"spark.executor.instances": "2"}
    assert_plan(SPEC, totals={"executors": 2}, pods={"executor": {"slots": 2}}, sparkConf=conf, tasksAtATime=4)
    assert_plan(SPEC, environment="dev", nodes={"environment": "dev"})


def test_others_fail_side_by_side(assert_plan: AssertPlan) -> None:
    with pytest.raises(AssertionError) as raised:
        assert_plan(SPEC, totals={"executors": 3, "pods": 3}, kafka={"topics": {"lines": 8}})
    assert str(raised.value).splitlines()[1:] == [
        "   expected                planned",
        "!  totals.executors = 3    totals.executors = 2",
        "   totals.pods = 3         totals.pods = 3",
        "!  kafka.topics.lines = 8  kafka.topics.lines = 4",
    ]


def test_a_name_that_no_plan_has_is_refused_with_those_that_are_near(assert_plan: AssertPlan) -> None:
    with pytest.raises(WrongNumbers, match=r"totals\.executor .*executors"):
        assert_plan(SPEC, totals={"executor": 2})


def test_a_plan_that_cannot_be_met_fails_unless_it_is_expected(assert_plan: AssertPlan, tmp_path: Path) -> None:
    spec = tmp_path / "large.yaml"
    text = (ROOT / SPEC).read_text()
    assert "memory: 4g" in text
    spec.write_text(text.replace("memory: 4g", "memory: 4000g"))
    with pytest.raises(AssertionError, match=r"(?s)not feasible.*SIZ-"):
        assert_plan(spec, pods={"executor": {"slots": 2}})
