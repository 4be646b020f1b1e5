"""Rows that a job reads again: as often as they need, and never more often than they may."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from penstock.jobs.driver.check import check
from penstock.jobs.errors import BadDeclaration
from penstock.jobs.spec import load
from penstock.scripts.local import kafka_topics
from tests.jobs.spark.apps import rounds
from tests.jobs.spark.running import Surroundings, TestedJob

_LIMIT = 3


@pytest.fixture
def job(surroundings: Surroundings) -> TestedJob:
    job = surroundings.job("tests.jobs.spark.apps.rounds", sources={"a": 1, "again": 1})

    def fed_back(spec: dict[str, Any]) -> None:
        spec["sinks"]["out"]["files"].update(bucketBy="none")
        spec["sinks"]["again"] = {"kafka": {"topic": job.topics["again"], "key": ["n"], "feedback": {"maxRounds": _LIMIT}}}
        for source in spec["sources"].values():
            source.pop("time")

    return job.edit(fed_back)


def test_rows_come_back_until_they_are_done_or_have_come_back_too_often(job: TestedJob) -> None:
    job.feed("a", {"n": 1}, {"n": 6}, {"n": 1_000_000})
    # From elsewhere: rows that do not say how often they have come back, or that say what can't be, would never end.
    job.feed("again", {"n": 8, "left": 8, "round": None}, {"n": 9, "left": 9, "round": -1})
    with job.running() as running:
        running.until_read({"a": [3], "again": [2 + 1 + _LIMIT]})
    assert job.rows() == [{"left": 0, "n": 1, "round": 0}, {"left": 1, "n": 6, "round": 1}]
    written = [json.loads(message.value() or b"") for message in kafka_topics.read(job.around.brokers, job.topics["again"])]
    assert [row["round"] for row in written if row["n"] == 1_000_000] == [1, 2, 3]
    assert len(written) == 2 + 1 + _LIMIT
    spent = {json.loads(row["value"])["n"]: row["reason"] for row in job.side_outputs("late")}
    reason = "again is limited to 3 rounds, and the row has come back "
    assert spent == {8: f"{reason}an unknown number of times", 9: f"{reason}-1 times", 1_000_000: f"{reason}3 times"}


@pytest.mark.parametrize(
    ("change", "need"),
    [
        ((', round="round")', ")"), "a column round of type INT or BIGINT"),
        (('"again": "left > 1"', '"again": lambda rows: rows'), "all rows or a condition for a feedback"),
    ],
)
def test_rows_without_rounds_and_functions_of_a_micro_batch_are_refused(job: TestedJob, change: tuple[str, str], need: str) -> None:
    folder = job.around.folder
    text = Path(rounds.__file__).read_text(encoding="utf-8").replace(*change)
    (folder / "changed_rounds.py").write_text(text, encoding="utf-8")
    job.edit(lambda spec: spec.update(app="changed_rounds"))
    with pytest.raises(BadDeclaration, match="JOB-004") as raised:
        check(load(job.spec), [folder], job.around.session, folder)
    assert need in raised.value.need
