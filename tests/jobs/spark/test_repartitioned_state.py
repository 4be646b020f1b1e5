"""A job of another parallelism goes on with its state in as many shuffle partitions, by a savepoint; no row is lost or doubled."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from penstock.jobs.driver.errors import StateNotRepartitioned
from penstock.jobs.savepoints.folder import Savepoints
from penstock.jobs.savepoints.taking import Taken, take
from penstock.jobs.spec import load
from penstock.jobs.spec.resources import State
from penstock.jobs.storage.checkpoint import Checkpoint
from penstock.jobs.storage.driver_runs import DriverRuns, DriverRunsFile
from penstock.jobs.storage.rewind_request import RewindRequest, RewindRequestFile
from penstock.scripts.operations.checkpoint_reading import content_of
from tests.jobs.spark.recorded_checkpoints import AFTER, BEFORE, assert_every_row, every_state, run
from tests.jobs.spark.running import Surroundings, TestedJob, asking

# With the one that Penstock's sessions begin a checkpoint with, state can't be repartitioned.
JOIN_FORMAT = "spark.sql.streaming.join.stateFormatVersion"


def _partitions(job: TestedJob) -> Mapping[str, int | None]:
    """Query -> shuffle partitions of its state, as the newest generation has it."""
    checkpoint = job.folder.checkpoint(job.generation.checkpoint)
    return {name: checkpoint.of_query(name).fixed_settings().shuffle_partitions for name in job.generation.queries}


def _state(checkpoint: Checkpoint) -> Mapping[str, int]:
    """Names and sizes of all files of its state."""
    return {name: one.bytes for name, one in checkpoint.listed().items() if "state/" in name}


def _row(name: str, clock: str) -> dict[str, object]:
    return {"key": "k", "at": f"2025-04-05T{clock}Z", "name": name}


@pytest.mark.chaos
def test_every_kind_of_state_goes_on_in_more_partitions_after_an_upgrade_with_a_savepoint(surroundings: Surroundings) -> None:
    job = every_state(surroundings, "every-state-repartitioned")
    with asking(surroundings.session, 2, spark_conf={JOIN_FORMAT: "3"}):
        run(job, BEFORE)
    left = _state(job.folder.checkpoint(1))

    job.edit(lambda spec: spec.update(upgradeMode="savepoint", restartNonce=1))
    with asking(surroundings.session, 3):
        run(job, AFTER, read={source: sum(len(batch[source]) for batch in BEFORE) for source in ("a", "b")})

    current = job.generation
    assert (current.number, current.checkpoint, current.savepoint) == (2, 2, f"{job.folder.uri}/savepoints/upgrade-1")
    assert _partitions(job) == {"": 3, "names": 3, "once": 3, "pairs": 3}
    assert_every_row(job)
    # The checkpoint of before is as the job has left it, for whoever goes back.
    assert _state(job.folder.checkpoint(1)) == left


def test_a_repartition_that_breaks_off_is_begun_anew_and_a_start_with_fewer_partitions_loses_nothing(surroundings: Surroundings) -> None:
    job = surroundings.job("tests.jobs.spark.apps.counts", sources={"a": 1})
    job.feed("a", _row("one", "12:30:00"), _row("two", "12:30:01"))
    with asking(surroundings.session, 4), job.running() as running:
        running.until_read({"a": [2]})
    current = job.generation
    folder = Savepoints(job.folder.uri).of("small")
    take(job.folder.checkpoint(1), folder, Taken(job.name, "tests", None, current), surroundings.s3)
    file = RewindRequestFile(job.folder.uri)
    asked = RewindRequest(after=current.number, start_from=folder.uri, asked=datetime.now(UTC))
    assert file.replace(file.read(), asked)

    def ends_here() -> None:
        """Spark has committed its micro-batch, of yet another parallelism, when the driver ends."""
        surroundings.session._streamingCheckpointManager.repartition(f"{job.folder.uri}/checkpoints/2", 3)
        raise KeyError("the driver ends here")

    broken_off = replace(job, on={"repartitioning": ends_here})
    with asking(surroundings.session, 1), pytest.raises(KeyError, match="the driver ends here"), broken_off.running():
        pass
    assert job.generation == current
    assert job.folder.checkpoint(2).fixed_settings().shuffle_partitions == 3

    DriverRunsFile(job.folder.uri).change(DriverRuns.resumed)
    job.feed("a", _row("three", "12:30:02"), _row("end", "12:31:00"))
    with asking(surroundings.session, 1), job.running() as running:
        running.until_read({"a": [4]})
        assert "parallelism" not in running.reading
    assert (job.generation.number, job.generation.checkpoint) == (2, 2)
    assert _partitions(job) == {"": 1}
    assert [(row["n"], row["names"]) for row in job.rows()] == [(3, "one three two")]

    # What is left in that checkpoint of the partitions of before is no part of the state.
    saved = take(job.folder.checkpoint(2), Savepoints(job.folder.uri).of("later"), Taken(job.name, "tests", None, None), surroundings.s3)
    assert {one.name.split("/")[2] for one in saved.objects if re.match(r"state/0/\d", one.name)} == {"0"}


def test_state_of_one_task_is_refused_before_a_savepoint_is_taken(surroundings: Surroundings) -> None:
    """Spark would lose it."""
    job = surroundings.job("tests.jobs.spark.apps.total", sources={"a": 1})
    job.edit(lambda spec: (spec["sinks"].update(out={"console": {}}), spec["sinks"].pop("late")))
    job.feed("a", _row("one", "12:30:00"))
    with asking(surroundings.session, 2), job.running() as running:
        running.until_read({"a": [1]})
    # Nothing is missing in it.
    content = content_of(load(job.spec), job.folder.checkpoint(1), job.generation, None)
    assert [store.partitions for query in content.queries for operator in query.operators for store in operator.stores] == [1]
    assert content.errors == ()
    job.edit(lambda spec: spec.update(upgradeMode="savepoint", restartNonce=1))
    with asking(surroundings.session, 3), pytest.raises(StateNotRepartitioned, match="runs in one task"), job.running():
        pass
    assert (job.generation.number, Savepoints(job.folder.uri).names()) == (1, [])


def test_a_join_whose_state_is_ordered_by_time_is_refused_before_a_savepoint_is_taken(surroundings: Surroundings) -> None:
    """Spark 4.3.0 would repartition it, and could not read it afterwards."""
    job = surroundings.job("tests.jobs.spark.apps.left_pairs", sources={"a": 1, "b": 1})
    job.feed("a", _row("one", "12:30:00"))
    job.feed("b", _row("two", "12:30:00"))
    with asking(surroundings.session, 2), job.running() as running:
        running.until_read({"a": [1], "b": [1]})
    job.edit(lambda spec: spec.update(upgradeMode="savepoint", restartNonce=1))
    refused = pytest.raises(StateNotRepartitioned, match="stateful operator 0 is a join of two streams with its state in format 4")
    with asking(surroundings.session, 3), refused, job.running():
        pass
    assert (job.generation.number, Savepoints(job.folder.uri).names()) == (1, [])
    # With the number that it has it goes on, and with its format, whatever the session would begin with.
    DriverRunsFile(job.folder.uri).change(DriverRuns.resumed)
    job.feed("a", _row("three", "12:30:01"))
    with asking(surroundings.session, 2, spark_conf={JOIN_FORMAT: "3"}), job.running() as running:
        running.until_read({"a": [2], "b": [1]})
    assert job.folder.checkpoint(job.generation.checkpoint).fixed_settings().join_format == 4


def test_state_in_memory_is_refused_before_a_savepoint_is_taken(surroundings: Surroundings) -> None:
    job = surroundings.job("tests.jobs.spark.apps.counts", sources={"a": 1})
    job.feed("a", _row("one", "12:30:00"))
    with asking(surroundings.session, 2, State(backend="memory")), job.running() as running:
        running.until_read({"a": [1]})
    job.edit(lambda spec: spec.update(upgradeMode="savepoint", restartNonce=1))
    with asking(surroundings.session, 4), pytest.raises(StateNotRepartitioned, match="from 2 to 4") as refused, job.running():
        pass
    assert refused.value.code == "JOB-109"
    assert (job.generation.number, Savepoints(job.folder.uri).names()) == (1, [])
