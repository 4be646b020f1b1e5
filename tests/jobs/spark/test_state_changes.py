"""Changes of an app that has state: the driver goes on with the state in the checkpoint only where it is that of its operators."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from penstock.jobs.driver.check import stored_queries
from penstock.jobs.driver.errors import StateDiffers
from penstock.jobs.sinks.open_parts import Chunk, OpenPart
from penstock.jobs.sinks.part_log import PartLog
from penstock.jobs.spec import load
from penstock.jobs.storage.generation import Generation
from penstock.jobs.storage.job_folder import JobFolder
from tests.jobs.spark.running import CHECKPOINTS, Surroundings, TestedJob

_APP = """
from penstock import Job, aggregate, tumbling
def build(job: Job) -> None:
    rows = job.source("a", "key STRING NOT NULL, at STRING, bid INT, ask INT")
    job.write({query}, "out")
    job.side_output("errors")
    job.side_output("late", "late")
"""
_SUMS = 'aggregate(rows, tumbling("10s"), keys=["key"], bids="sum(bid)", asks="sum(ask)").select(key="key", bids="bids", asks="asks")'
# Spark sees two sums of the same types, and takes that of the bids for that of the asks.
_SWAPPED = 'aggregate(rows, tumbling("10s"), keys=["key"], asks="sum(ask)", bids="sum(bid)").select(key="key", bids="bids", asks="asks")'


@dataclass
class Team:
    """A job whose app changes."""

    job: TestedJob
    folder: Path

    def change(self, query: str, **spec: Any) -> None:
        """The app has another query, and the spec other fields. A module that is imported stays as it is, so each app is another one."""
        name = f"team_{uuid.uuid4().hex[:8]}"
        (self.folder / f"{name}.py").write_text(_APP.format(query=query), encoding="utf-8")
        self.job.edit(lambda document: document.update(spec, app=name))

    def run(self, read: int) -> None:
        """Runs the job until it has committed as many records, and stops it."""
        with self.job.running() as running:
            running.until_read({"a": [read]})

    @property
    def generations(self) -> list[Generation]:
        """Those that have begun."""
        folder = JobFolder(f"s3a://{CHECKPOINTS}/{self.job.name}")
        return [folder.generation(number) for number in folder.generations()]


@pytest.fixture
def team(surroundings: Surroundings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Team:
    monkeypatch.syspath_prepend(str(tmp_path))
    made = Team(surroundings.job("none", sources={"a": 1}), tmp_path)
    made.change(_SUMS)
    return made


def _row(clock: str, bid: int = 1, ask: int = 10) -> dict[str, object]:
    return {"key": "k", "at": f"2025-04-05T12:{clock}Z", "bid": bid, "ask": ask}


@pytest.mark.chaos
def test_two_aggregates_that_change_places_or_another_output_mode_are_refused_and_the_old_app_goes_on(team: Team) -> None:
    team.job.feed("a", _row("30:01"))
    team.run(1)
    team.change(_SWAPPED)
    with pytest.raises(StateDiffers) as raised, team.job.running():
        pass
    assert raised.value.path == "the query, operator 0 (Aggregate)"
    assert raised.value.given == "values in the order sum(ask), sum(bid) instead of sum(bid), sum(ask)"
    # The state is the same, and the window that is open would never come out.
    team.change(f'job.stream({_SUMS}.df, output_mode="update")')
    with pytest.raises(StateDiffers) as raised, team.job.running():
        pass
    assert (raised.value.path, raised.value.given) == ("the query", "output mode update")
    (first,) = team.generations
    assert first.queries[""].output_mode == "append"
    assert [(sink.name, sink.kind, sink.place) for sink in first.queries[""].sinks or ()] == [
        ("out", "files", team.job.name),
        ("errors", "topic", f"{team.job.name}-errors"),
        ("late", "topic", f"{team.job.name}-late"),
    ]
    # Files that a driver has left open, as it crashed, are those of a sink that is now another one.
    files = _leave_open(team.job, {"left": 1})
    team.change(_SUMS)
    team.job.edit(lambda spec: spec["sinks"].update(out={"console": {}}))
    with pytest.raises(StateDiffers, match="has 1 rows of it that are not published") as raised, team.job.running():
        pass
    assert raised.value.path == "the query, sink out"
    team.job.edit(lambda spec: spec["sinks"].update(out=files))
    team.job.feed("a", _row("31:00"))
    team.run(2)
    assert team.job.rows() == [{"key": "k", "bids": 1, "asks": 10}, {"left": 1}]


def _leave_open(job: TestedJob, row: dict[str, int]) -> Any:
    """Decides that a file stays open; returns its sink in the spec."""
    checkpoint = JobFolder(f"s3a://{CHECKPOINTS}/{job.name}").checkpoint(1)
    content, log = json.dumps(row).encode() + b"\n", PartLog(checkpoint, "out")
    last = log.last()
    assert last is not None
    chunk = Chunk(name="00000000-left.json", rows=1, bytes=len(content))
    job.around.s3.put_object(Bucket=CHECKPOINTS, Key=f"{job.name}/checkpoints/1/penstock/sinks/out/chunks/{chunk.name}", Body=content)
    part = OpenPart(directory="dt=2025-04-05", shape="json", opened_ms=1, touched_ms=1, chunks=(chunk,))
    assert log.add(last.model_copy(update={"number": last.number + 1, "parts": (), "used": (), "open": (part,)}))
    return yaml.safe_load(job.spec.read_text(encoding="utf-8"))["spec"]["sinks"]["out"]


@pytest.mark.chaos
def test_with_any_schema_the_state_of_one_sum_becomes_that_of_the_other(team: Team) -> None:
    team.job.feed("a", _row("30:01"))
    team.run(1)
    team.change(_SWAPPED, checkpoint={"stateSchema": "any"})
    team.job.feed("a", _row("31:00"))
    team.run(2)
    assert team.job.rows() == [{"key": "k", "bids": 10, "asks": 1}]
    assert [generation.checkpoint for generation in team.generations] == [1, 1]


def test_what_keeps_the_state_may_change_all_else(team: Team) -> None:
    team.job.feed("a", _row("30:01"))
    team.run(1)
    team.change(f'{_SUMS}.select(key="upper(key)", both="bids + asks")')
    team.job.feed("a", _row("31:00"))
    team.run(2)
    assert team.job.rows() == [{"key": "K", "both": 11}]
    assert len(team.generations) == 2


def test_a_begin_without_the_state_may_keep_another_one(team: Team) -> None:
    team.job.feed("a", _row("30:01"))
    team.run(1)
    team.change(_SWAPPED, upgradeMode="stateless")
    team.job.feed("a", _row("31:00"))
    team.run(2)
    assert team.job.rows() == [{"key": "k", "bids": 1, "asks": 10}]


@pytest.mark.chaos
def test_what_is_recorded_of_each_operator_is_what_spark_keeps(surroundings: Surroundings, tmp_path: Path) -> None:
    job = surroundings.job("tests.jobs.spark.apps.every_state", sources={"a": 1, "b": 1})
    others = {name: {"files": {"path": f"{job.name}-{name}", "prefix": "part-"}} for name in ("pairs", "names", "once")}
    job.edit(lambda spec: (spec["sinks"].update(others), spec.update(trigger="100ms")))
    job.feed("a", {"key": "k", "at": "2025-04-05T12:30:01Z", "name": "x"})
    job.feed("b", {"key": "k", "at": "2025-04-05T12:30:01Z", "name": "x"})
    with job.running() as running:
        running.until_read({"a": [1], "b": [1]})
    folder = JobFolder(f"s3a://{CHECKPOINTS}/{job.name}")
    current = folder.current()
    assert current is not None
    states = {name: query.operators[0].state for name, query in current.queries.items()}

    def kept(query: str, part: str, **options: str) -> list[str]:
        uri = folder.checkpoint(1).of_query(query).uri
        rows = surroundings.session.read.format("statestore").options(**options).load(uri)
        return list(rows.select(f"{part}.*").columns)

    counts, pairs, names, once = (states[name] for name in ("", "pairs", "names", "once"))
    assert counts and pairs and names and once
    assert [column.name for column in counts.keys] == kept("", "key")
    assert [column.type for column in counts.values] == ["bigint"]
    sides = {
        side: [column.name.removeprefix(f"{side}.") for column in pairs.values if column.name.startswith(side)]
        for side in ("left", "right")
    }
    assert sides == {side: kept("pairs", "value", joinSide=side) for side in sides}
    assert [column.name for column in names.values] == ["penstock_held", "seen"]
    assert [column.name for column in names.keys] == kept("names", "key", stateVarName="seen")
    assert [column.name for column in once.keys] == kept("once", "key")
    assert stored_queries(load(job.spec), (), surroundings.session, tmp_path) == current.queries
