"""Bounded runs as jobs: what is read, what closes at the end, and what a restart does at each point."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions

from penstock.jobs.driver import micro_batch
from penstock.jobs.driver.bounded import BoundedRun
from penstock.jobs.driver.errors import BoundedRunOver, EndUnreachable
from penstock.jobs.storage.checkpoint import Checkpoint
from penstock.jobs.watermark import END_MS
from penstock.scripts.errors import TopicsNotCreated
from penstock.scripts.local import kafka_topics
from tests.jobs.spark.apps import gated
from tests.jobs.spark.killed import Point, after, before, killed_at
from tests.jobs.spark.running import OUTPUT, Running, Surroundings, TestedJob

COUNTS = "tests.jobs.spark.apps.counts"


def _row(name: str, clock: str = "12:30:00") -> dict[str, object]:
    return {"key": "k", "at": f"2025-04-05T{clock}Z", "name": name}


def _bounded(surroundings: Surroundings, app: str = COUNTS, sources: Mapping[str, int] | None = None, **spec: Any) -> TestedJob:
    return surroundings.job(app, sources=sources or {"a": 1}, trigger="availableNow", bounded=True, **spec)


def _finished(job: TestedJob) -> Running:
    """The job, run to its end."""
    with job.running() as running:
        running.wait("finished")
        running.wait("stopped")
    return running


def _windows(job: TestedJob) -> list[tuple[str, str]]:
    """Start of each window, and what is in it."""
    return sorted((row["window_start"][11:19], row["names"]) for row in job.rows())


def test_all_windows_come_out_and_the_checkpoint_is_finished(surroundings: Surroundings) -> None:
    # The second partition is behind: nothing in it is late.
    job = _bounded(surroundings, sources={"a": 2})
    job.feed("a", _row("one", "12:30:00"), _row("two", "12:40:01"), b"broken", partition=0)
    job.feed("a", _row("three", "12:20:05"), _row("four", "12:20:09"), partition=1)
    running = _finished(job)
    assert _windows(job) == [("12:20:00", "four three"), ("12:30:00", "one"), ("12:40:00", "two")]
    assert len(job.side_outputs("errors")) == 1
    assert job.side_outputs("late") == []
    assert [batch["watermarks"]["inForceMs"] for batch in running.batches] == [END_MS, END_MS]
    assert running.batches[0]["watermarks"]["inputs"] == {"a": 1743855599000}
    assert [sum(batch["rowsIn"].values()) for batch in running.batches] == [5, 0]
    with pytest.raises(BoundedRunOver, match="JOB-022") as refused, job.running():
        pass
    assert "new metadata.name" in refused.value.render()
    # Nor does a job go on that has another end, or none.
    job.edit(lambda spec: spec.update(bounded=False))
    with pytest.raises(BoundedRunOver), job.running():
        pass
    assert len(job.rows()) == 3


def test_available_now_alone_goes_on_where_it_ended(surroundings: Surroundings) -> None:
    job = surroundings.job(COUNTS, sources={"a": 1}, trigger="availableNow")
    job.feed("a", _row("one"), _row("two", "12:30:25"))
    with job.running() as running:
        running.wait("stopped")
    assert _windows(job) == [("12:30:00", "one")]
    job.feed("a", _row("three", "12:30:22"), _row("four", "12:30:50"))
    with job.running() as running:
        running.wait("stopped")
    assert _windows(job) == [("12:30:00", "one"), ("12:30:20", "three two")]


@pytest.mark.parametrize("app", [COUNTS, "tests.jobs.spark.apps.copy_rows"])
def test_an_empty_input_is_read_to_its_end(surroundings: Surroundings, app: str) -> None:
    job = _bounded(surroundings, app)
    running = _finished(job)
    assert running.batches[0]["watermarks"]["inForceMs"] == END_MS
    assert job.rows() == []
    with pytest.raises(BoundedRunOver), job.running():
        pass


def test_what_arrives_after_the_start_is_not_read(surroundings: Surroundings, monkeypatch: pytest.MonkeyPatch) -> None:
    begin = BoundedRun.begin
    job = _bounded(surroundings)
    job.feed("a", _row("one"), _row("two"))

    def then_more(run: BoundedRun, latest: Any) -> None:
        begin(run, latest)
        # Before Spark looks where the topic ends, and in a partition that did not exist.
        job.feed("a", _row("late", "12:00:00"), _row("later", "13:00:00"))
        admin = AdminClient({"bootstrap.servers": surroundings.brokers})
        admin.create_partitions([NewPartitions(job.topics["a"], 2)])[job.topics["a"]].result()
        kafka_topics.wait_for_leaders(admin, {job.topics["a"]: 2})
        job.feed("a", _row("elsewhere"), partition=1)

    monkeypatch.setattr(BoundedRun, "begin", then_more)
    running = _finished(job)
    assert _windows(job) == [("12:30:00", "one two")]
    assert running.batches[-1]["totalRowsIn"] == {"a": 2}
    assert running.committed[-1]["ends"] == {job.topics["a"]: {"0": 2}}
    assert [committed["lagRecords"] for committed in running.committed] == [0] * len(running.committed)
    assert job.side_outputs("late") == []


def _of(number: int) -> Callable[..., bool]:
    return lambda checkpoint, record: record.batch == number


def _closing(*arguments: Any) -> bool:
    return bool(arguments[1] == "finished")


POINTS: dict[str, tuple[Point, Callable[..., bool]]] = {
    "before the record of the last data": (before(Checkpoint, "record"), _of(1)),
    "after the record of the last data, before its commit": (after(Checkpoint, "record"), _of(1)),
    "after the commit of the last data": (before(micro_batch.MicroBatches, "_run"), lambda *arguments: arguments[2] == 2),
    "before the record of what closes": (before(Checkpoint, "record"), _of(2)),
    "after the record of what closes, before its commit": (after(Checkpoint, "record"), _of(2)),
    "after the commit of what closes, before the run is finished": (before(Checkpoint, "put_once"), _closing),
}


_QUICK = (("after the record of what closes, before its commit", "files"),)


@pytest.mark.parametrize(
    ("point", "sink"),
    [
        pytest.param(point, sink, marks=() if (point, sink) in _QUICK else pytest.mark.chaos)
        for point, sink in product(POINTS, ("files", "kafka"))
    ],
)
def test_a_run_interrupted_at_any_point_ends_as_if_it_had_not_been(surroundings: Surroundings, point: str, sink: str) -> None:
    job = _bounded(surroundings)
    if sink == "kafka":
        _to_a_topic(surroundings, job)
    else:
        # Parts that stay open: they must come out at the end, too.
        job.edit(lambda spec: spec["sinks"]["out"]["files"].update(roll={"interval": "1h"}))
    job.edit(lambda spec: spec["sources"]["a"]["kafka"].update(maxOffsetsPerTrigger=2))
    job.feed("a", _row("one"), _row("two", "12:30:01"), _row("three", "12:30:11"), _row("four", "12:30:02"))
    with killed_at(*POINTS[point]), job.running() as running:
        running.wait("failed")
    job.feed("a", _row("more"), _row("much later", "13:30:00"), b"broken", _row("and more", "14:30:00"), _row("five", "15:30:00"))
    running = _finished(job)
    rows = list(job.side_outputs("out")) if sink == "kafka" else job.rows()
    assert sorted((row["window_start"][11:19], row["names"]) for row in rows) == [("12:30:00", "four one two"), ("12:30:10", "three")]
    assert job.side_outputs("errors") == job.side_outputs("late") == []
    if running.batches:
        assert running.batches[-1]["totalRowsIn"] == {"a": 4}
    with pytest.raises(BoundedRunOver), job.running():
        pass


def _to_a_topic(surroundings: Surroundings, job: TestedJob) -> None:
    kafka_topics.create(surroundings.brokers, {f"{job.name}-out": 1})
    job.edit(lambda spec: spec["sinks"].update(out={"kafka": {"topic": f"{job.name}-out", "guarantee": "exactly-once"}}))


def test_a_run_that_is_stopped_half_way_has_not_finished(surroundings: Surroundings) -> None:
    job = _bounded(surroundings, "tests.jobs.spark.apps.gated")
    job.edit(lambda spec: spec["sinks"].update(slow={"function": {"name": "slow"}}))
    job.edit(lambda spec: spec["sources"]["a"]["kafka"].update(maxOffsetsPerTrigger=1))
    job.feed("a", _row("one"), _row("two"))
    with job.running() as running:
        gated.entered.get(timeout=60)
        running.stop.set()
        gated.let.release()
        running.wait("stopped")
    assert [batch["batch"] for batch in running.batches] == [0]
    assert "finished" not in running.heard
    job.feed("a", _row("three"))
    gated.let.release()
    running = _finished(job)
    assert gated.entered.get_nowait() == 1
    assert (len(job.rows()), running.batches[-1]["totalRowsIn"]) == (2, {"a": 2})


def test_of_files_those_are_read_that_were_there(surroundings: Surroundings, monkeypatch: pytest.MonkeyPatch) -> None:
    begin = BoundedRun.begin
    job = _bounded(surroundings)
    folder = f"in/{job.name}"
    files = {"files": {"path": folder, "maxFilesPerTrigger": 1}, "time": {"field": "at", "outOfOrderness": "10s"}}
    job.edit(lambda spec: spec.update(sources={"a": files}))

    def put(name: str, *rows: Mapping[str, Any]) -> None:
        body = "\n".join(map(json.dumps, rows)).encode()
        surroundings.s3.put_object(Bucket=OUTPUT, Key=f"{folder}/{name}", Body=body)

    def then_more(run: BoundedRun, latest: Any) -> None:
        begin(run, latest)
        put("later.jsonl", _row("later", "12:00:00"), _row("much later", "13:00:00"))

    put("dt=2025-04-05/a b%20c+\u00e9\u3000\u00a0\U0001f680#[?&{}^|~'\"<>`@$,;=()!*.jsonl", _row("one"), _row("two", "12:30:12"))
    put("second.jsonl", _row("three", "12:30:05"))
    monkeypatch.setattr(BoundedRun, "begin", then_more)
    with killed_at(before(Checkpoint, "record"), _of(1)), job.running() as running:
        running.wait("failed")
    put("after the crash.jsonl", _row("four"))
    running = _finished(job)
    assert _windows(job) == [("12:30:00", "one three"), ("12:30:10", "two")]
    assert running.batches[-1]["totalRowsIn"] == {"a": 3}
    assert job.side_outputs("late") == []
    with pytest.raises(BoundedRunOver), job.running():
        pass


def test_an_end_that_is_gone_is_an_error(surroundings: Surroundings) -> None:
    job = _bounded(surroundings)
    job.feed("a", _row("one"), _row("two"))
    with killed_at(before(Checkpoint, "record")), job.running() as running:
        running.wait("failed")
    admin = AdminClient({"bootstrap.servers": surroundings.brokers})
    admin.delete_topics([job.topics["a"]])[job.topics["a"]].result()
    _created_again(surroundings, job.topics["a"])
    job.feed("a", _row("another"))
    with pytest.raises(EndUnreachable, match="JOB-023") as gone, job.running():
        pass
    assert "the last offset is 1" in gone.value.render()
    assert "offset 2" in gone.value.render()


def _created_again(surroundings: Surroundings, topic: str) -> None:
    """The brokers delete a topic in the background, and refuse its name until then."""
    while True:
        try:
            kafka_topics.create(surroundings.brokers, {topic: 1})
        except TopicsNotCreated:
            continue
        return
