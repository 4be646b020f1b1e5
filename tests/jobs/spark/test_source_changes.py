"""Changes of the sources of a job that has a checkpoint, which has their offsets by position."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from pathlib import Path

import pytest

from penstock.jobs.driver.errors import SourcesDiffer
from tests.jobs.spark.running import Surroundings, TestedJob

_APP = """
from penstock import Job, union
def build(job: Job) -> None:
    rows = [job.source(name, "id STRING NOT NULL, at STRING") for name in {names}]
    job.write(union(*rows) if len(rows) > 1 else rows[0], "out")
    job.side_output("errors")
    job.side_output("late", "late")
"""


@dataclass
class Team:
    """A job whose app reads other sources from one run to the next."""

    job: TestedJob
    folder: Path

    def reads(self, **topics: str | list[str]) -> None:
        """The app reads these sources, in this order: name -> the topics of sources of the job. An imported module stays as it is."""
        app = f"team_{uuid.uuid4().hex[:8]}"
        (self.folder / f"{app}.py").write_text(_APP.format(names=list(topics)), encoding="utf-8")
        time = {"field": "at", "outOfOrderness": "10s"}
        named = {name: [self.job.topics[one] for one in ([of] if isinstance(of, str) else of)] for name, of in topics.items()}
        sources = {name: {"kafka": {"topics": of, "startingOffsets": "earliest"}, "time": time} for name, of in named.items()}
        self.job.edit(lambda spec: spec.update(app=app, sources=sources))

    def run(self, **ends: list[int]) -> None:
        """Runs the job until it has committed as many records of each source."""
        with self.job.running() as running:
            running.until_read(ends)


@pytest.fixture
def team(surroundings: Surroundings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Team:
    monkeypatch.syspath_prepend(str(tmp_path))
    job = surroundings.job("none", sources={"a": 1, "b": 1}, trigger="100ms")
    job.feed("a", _row("a1"))
    job.feed("b", _row("b1"))
    return Team(job, tmp_path)


def _row(number: str) -> dict[str, object]:
    return {"id": number, "at": "2025-04-05T12:30:01Z"}


def test_sources_in_another_order_more_of_them_or_other_topics_are_refused_and_the_old_ones_go_on(team: Team) -> None:
    team.reads(a="a", b="b")
    team.run(a=[1], b=[1])
    refused = {
        "b, a": {"b": "b", "a": "a"},
        "a": {"a": "a"},
        "a, c": {"a": "a", "c": "b"},
    }
    for given, topics in refused.items():
        team.reads(**topics)
        with pytest.raises(SourcesDiffer, match="the sources whose offsets the checkpoint has, in this order: a, b") as raised:
            team.run()
        assert (raised.value.path, raised.value.given) == ("the query", given)
    team.reads(a="a", b="a")
    with pytest.raises(SourcesDiffer, match=f"source b.*topics {team.job.topics['b']}"):
        team.run()
    team.reads(a="a", b="b")
    team.job.feed("a", _row("a2"))
    team.run(a=[2], b=[1])
    assert [row["id"] for row in team.job.rows()] == ["a1", "a2", "b1"]


def test_a_topic_that_is_added_to_a_source_is_read_from_its_beginning(team: Team) -> None:
    team.reads(a="a")
    team.run(a=[1])
    team.reads(a=["a", "b"])
    team.run(a=[1], b=[1])
    assert [row["id"] for row in team.job.rows()] == ["a1", "b1"]
