"""A job of another parallelism goes on with its state in as many shuffle partitions, by a savepoint; no row is lost or doubled."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from pyspark.sql import SparkSession

from penstock.jobs.driver.session import state_conf
from penstock.jobs.errors import StateNotRepartitioned
from penstock.jobs.savepoints.folder import Savepoints
from penstock.jobs.savepoints.taking import Taken, take
from penstock.jobs.spec.resources import State
from penstock.jobs.spec.stage_settings import SHUFFLE_PARTITIONS
from penstock.jobs.storage.checkpoint import Checkpoint
from penstock.jobs.storage.driver_runs import DriverRuns, DriverRunsFile
from penstock.jobs.storage.generation import Generation
from penstock.jobs.storage.job_folder import JobFolder
from penstock.jobs.storage.rewind_request import RewindRequest, RewindRequestFile
from tests.jobs.spark.recorded_checkpoints import AFTER, BEFORE, every_state, run
from tests.jobs.spark.running import CHECKPOINTS, Surroundings, TestedJob
from tests.jobs.spark.test_earlier_releases import PAIRS


@contextmanager
def _asking(session: SparkSession, partitions: int, state: State | None = None) -> Iterator[None]:
    """A session as a plan with this parallelism makes it, and this state."""
    conf = {SHUFFLE_PARTITIONS: str(partitions), **(state_conf(state) if state is not None else {})}
    before = {key: str(session.conf.get(key)) for key in conf}
    try:
        for key, value in conf.items():
            session.conf.set(key, value)
        yield
    finally:
        for key, value in before.items():
            session.conf.set(key, value)


def _folder(job: TestedJob) -> JobFolder:
    return JobFolder(f"s3a://{CHECKPOINTS}/{job.name}")


def _current(job: TestedJob) -> Generation:
    current = _folder(job).current()
    assert current is not None
    return current


def _partitions(job: TestedJob) -> Mapping[str, int | None]:
    """Query -> shuffle partitions of its state, as the newest generation has it."""
    checkpoint = _folder(job).checkpoint(_current(job).checkpoint)
    return {name: checkpoint.of_query(name).fixed_settings().shuffle_partitions for name in _current(job).queries}


def _state(checkpoint: Checkpoint) -> Mapping[str, int]:
    """Names and sizes of all files of its state."""
    return {name: one.bytes for name, one in checkpoint.listed().items() if "state/" in name}


def _row(name: str, clock: str) -> dict[str, object]:
    return {"key": "k", "at": f"2025-04-05T{clock}Z", "name": name}


def test_every_kind_of_state_goes_on_in_more_partitions_after_an_upgrade_with_a_savepoint(surroundings: Surroundings) -> None:
    job = every_state(surroundings, "every-state-repartitioned")
    run(job, BEFORE)
    left = _state(_folder(job).checkpoint(1))

    job.edit(lambda spec: spec.update(upgradeMode="savepoint", restartNonce=1))
    with _asking(surroundings.session, 3):
        run(job, AFTER, read={source: sum(len(batch[source]) for batch in BEFORE) for source in ("a", "b")})

    current = _current(job)
    assert (current.number, current.checkpoint, current.savepoint) == (2, 2, f"{_folder(job).uri}/savepoints/upgrade-1")
    assert _partitions(job) == {"": 3, "names": 3, "once": 3, "pairs": 3}
    assert [(row["key"], row["n"]) for row in job.rows()] == [("k", 1), ("k", 1), ("k", 2), ("l", 1), ("l", 1), ("m", 1)]
    assert Counter((row["left"], row["right"]) for row in job.rows_of("pairs")) == PAIRS
    names = [("k", "a1"), ("k", "a3"), ("k", "a6a7"), ("l", "a2"), ("l", "a4"), ("m", "a5")]
    assert [(row["key"], row["names"]) for row in job.rows_of("names")] == names
    assert [row["name"] for row in job.rows_of("once")] == ["b1", "b2", "b3", "b4", "b5", "end", "past"]
    assert [json.loads(record["value"])["name"] for record in job.side_outputs("late")] == ["late"]
    # The checkpoint of before is as the job has left it, for whoever goes back.
    assert _state(_folder(job).checkpoint(1)) == left


def test_a_repartition_that_breaks_off_is_begun_anew_and_a_start_with_fewer_partitions_loses_nothing(surroundings: Surroundings) -> None:
    job = surroundings.job("tests.jobs.spark.apps.counts", sources={"a": 1})
    job.feed("a", _row("one", "12:30:00"), _row("two", "12:30:01"))
    with _asking(surroundings.session, 4), job.running() as running:
        running.until_read({"a": [2]})
    current = _current(job)
    folder = Savepoints(_folder(job).uri).of("small")
    take(_folder(job).checkpoint(1), folder, Taken(job.name, "tests", None, current), surroundings.s3)
    file = RewindRequestFile(_folder(job).uri)
    asked = RewindRequest(after=current.number, start_from=folder.uri, asked=datetime.now(UTC))
    assert file.replace(file.read(), asked)

    def ends_here() -> None:
        """Spark has committed its micro-batch, of yet another parallelism, when the driver ends."""
        surroundings.session._streamingCheckpointManager.repartition(f"{_folder(job).uri}/checkpoints/2", 3)
        raise KeyError("the driver ends here")

    broken_off = replace(job, on={"repartitioning": ends_here})
    with _asking(surroundings.session, 1), pytest.raises(KeyError, match="the driver ends here"), broken_off.running():
        pass
    assert _current(job) == current
    assert _folder(job).checkpoint(2).fixed_settings().shuffle_partitions == 3

    DriverRunsFile(_folder(job).uri).change(DriverRuns.resumed)
    job.feed("a", _row("three", "12:30:02"), _row("end", "12:31:00"))
    with _asking(surroundings.session, 1), job.running() as running:
        running.until_read({"a": [4]})
        assert "parallelism" not in running.reading
    assert (_current(job).number, _current(job).checkpoint) == (2, 2)
    assert _partitions(job) == {"": 1}
    assert [(row["n"], row["names"]) for row in job.rows()] == [(3, "one three two")]


def test_state_in_memory_is_refused_before_a_savepoint_is_taken(surroundings: Surroundings) -> None:
    job = surroundings.job("tests.jobs.spark.apps.counts", sources={"a": 1})
    job.feed("a", _row("one", "12:30:00"))
    with _asking(surroundings.session, 2, State(backend="memory")), job.running() as running:
        running.until_read({"a": [1]})
    job.edit(lambda spec: spec.update(upgradeMode="savepoint", restartNonce=1))
    with _asking(surroundings.session, 4), pytest.raises(StateNotRepartitioned, match="from 2 to 4") as refused, job.running():
        pass
    assert refused.value.code == "JOB-109"
    assert (_current(job).number, Savepoints(_folder(job).uri).names()) == (1, [])
