"""Jobs that start from a savepoint on brokers to which their topics have moved, where the same records have other offsets."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from penstock.jobs.driver.errors import RewindImpossible
from penstock.jobs.kafka.errors import RecordsGone
from penstock.jobs.local.recording import Record
from penstock.jobs.savepoints.errors import OffsetsNotThere
from penstock.jobs.savepoints.folder import SavepointFolder, Savepoints
from penstock.jobs.savepoints.taking import Taken, take
from penstock.jobs.storage.driver_runs import DriverRuns, DriverRunsFile
from penstock.jobs.storage.generation import Rewound
from penstock.jobs.storage.rewind_request import RewindRequest, RewindRequestFile
from penstock.scripts.local import kafka_topics
from penstock.scripts.local.kafka_broker import KafkaBroker
from tests.jobs.spark.running import Surroundings, TestedJob


@pytest.fixture(scope="module")
def other_brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("other-kafka")
    with KafkaBroker(folder=folder / "data", log=folder / "kafka.log") as broker:
        yield broker.address


def _take(job: TestedJob) -> SavepointFolder:
    current, folder = job.generation, Savepoints(job.folder.uri).of("one")
    of = Taken(job=job.name, environment="tests", by=None, generation=current)
    take(job.folder.checkpoint(current.checkpoint), folder, of, job.around.s3)
    return folder


def _ask(job: TestedJob, folder: SavepointFolder, offsets: Any) -> None:
    """Requests a start from a savepoint, as ``penstock savepoint start-from`` does."""
    file = RewindRequestFile(job.folder.uri)
    request = RewindRequest(after=job.generation.number, start_from=folder.uri, offsets=offsets, asked=datetime.now(UTC))
    assert file.replace(file.read(), request)
    # As the command does, of a job that has failed.
    DriverRunsFile(job.folder.uri).change(DriverRuns.resumed)


def _moved(job: TestedJob, brokers: str, *, topic: str, partitions: int, before: int) -> TestedJob:
    """The job on other brokers, which have its records with their timestamps, after some that its own have never had."""
    kafka_topics.create(brokers, {topic: partitions, f"{job.name}-errors": 1, f"{job.name}-late": 1})
    read = kafka_topics.recorded(kafka_topics.read(job.around.brokers, job.topics["a"]), frozenset())
    older = [Record(json.dumps(_row("30:00", "older")).encode(), partition=0, timestamp_ms=1_700_000_000_000) for _ in range(before)]
    copies = [Record(one.value, one.key, partition=one.partition, timestamp_ms=one.timestamp_ms) for one in read]
    kafka_topics.feed(brokers, topic, partitions, [*older, *copies], lambda _: None)
    return replace(job, around=replace(job.around, brokers=brokers), topics={"a": topic})


def _row(clock: str, name: str) -> dict[str, object]:
    return {"key": "k", "at": f"2025-04-05T12:{clock}Z", "name": name}


def test_a_job_goes_on_with_its_state_at_the_savepoints_time_on_other_brokers(surroundings: Surroundings, other_brokers: str) -> None:
    job = surroundings.job("tests.jobs.spark.apps.saved", sources={"a": 1}, parameters={"names": True})
    names = {"files": {"path": f"{job.name}-names", "prefix": "part-", "roll": {"interval": "1ms"}}}
    job.edit(lambda spec: (spec["sinks"].update(names=names), spec.update(trigger="200ms")))
    job.feed("a", _row("30:01", "a1"), _row("30:12", "a2"), _row("30:31", "a3"))
    with job.running() as running:
        running.until_read({"a": [3]})
    folder = _take(job)

    moved = _moved(job, other_brokers, topic=job.topics["a"], partitions=1, before=5)
    moved.edit(lambda spec: spec.update(initialSavepointPath=folder.uri, initialOffsets="savepointTime", restartNonce=1))
    moved.feed("a", _row("30:20", "late"), _row("30:33", "a4"), _row("59:00", "end"))
    with moved.running() as running:
        running.until_read({"a": [11]})
    begun = moved.generation
    assert (begun.number, begun.savepoint, begun.rewind) == (2, folder.uri, Rewound(left=1, offsets="savepointTime"))
    # As without the move: each window and each name has its rows of before and after, once.
    assert [(row["key"], row["n"]) for row in moved.rows()] == [("k", 1), ("k", 1), ("k", 2)]
    assert [row["names"] for row in moved.rows_of("names")] == ["a1", "a2", "a3a4"]
    assert {json.loads(record["value"])["name"] for record in moved.side_outputs("late")} == {"late"}


@pytest.mark.chaos
def test_a_job_goes_on_at_given_offsets_of_topics_with_other_names(surroundings: Surroundings, other_brokers: str) -> None:
    job = surroundings.job("tests.jobs.spark.apps.copy_rows", sources={"a": 1})
    job.feed("a", _row("30:01", "one"), _row("30:02", "two"))
    with job.running() as running:
        running.until_read({"a": [2]})
    folder, topic = _take(job), f"west.{job.topics['a']}"
    moved = _moved(job, other_brokers, topic=topic, partitions=2, before=3)
    moved.edit(lambda spec: spec["sources"]["a"]["kafka"].update(topic=topic))
    moved.feed("a", _row("30:03", "three"))
    moved.feed("a", _row("30:04", "four"), partition=1)

    refused: list[tuple[Any, type[Exception]]] = [
        ({topic: {0: 7, 1: 0}}, OffsetsNotThere),
        ({topic: {0: 5}}, OffsetsNotThere),
        ({topic: {0: 5, 1: 0, 2: 0}}, OffsetsNotThere),
        ({job.topics["a"]: {0: 5}}, OffsetsNotThere),
        (4_000_000_000_000, RewindImpossible),
    ]
    for offsets, error in refused:
        _ask(moved, folder, offsets)
        with pytest.raises(error), moved.running():
            pass
        assert (job.folder.generations(), job.folder.checkpoints()) == ([1], [1])
    given: Mapping[str, dict[int, int]] = {topic: {0: 5, 1: -2}}
    _ask(moved, folder, given)
    with moved.running() as running:
        running.until_read({"a": [6, 1]})
    assert sorted(row["name"] for row in moved.rows()) == ["four", "one", "three", "two"]
    assert (moved.generation.number, moved.generation.checkpoint) == (2, 2)
    # The undo is of the checkpoint alone: it has the offsets of the brokers that it was on.
    file = RewindRequestFile(job.folder.uri)
    assert file.replace(file.read(), RewindRequest(after=2, back_to=1, asked=datetime.now(UTC)))
    job.edit(lambda spec: spec["sources"]["a"]["kafka"].update(topic=job.topics["a"]))
    back = replace(job, around=replace(job.around, brokers=other_brokers))
    kafka_topics.create(other_brokers, {job.topics["a"]: 1})
    with pytest.raises(RecordsGone), back.running():
        pass
