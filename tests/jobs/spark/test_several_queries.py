"""Several queries in one driver: each output is right, what they read together is written aside and counted once, and they end together."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions

from penstock.jobs.driver.errors import BoundedRunOver
from penstock.jobs.errors import BadDeclaration
from penstock.jobs.sinks.errors import SinkFunctionFailed
from penstock.jobs.storage.checkpoint import BatchRecord, Checkpoint
from penstock.jobs.storage.errors import LeaseLost
from penstock.scripts.local import recorded_run
from tests.jobs.spark.apps import several
from tests.jobs.spark.running import CHECKPOINTS, OUTPUT, Running, Surroundings, TestedJob
from tests.jobs.spark.test_one_writer import _let_go, _take_over


class Killed(Exception):
    """Represents the end of the process at a chosen point."""


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Closes the sink `gate`; the event lets it fail."""
    monkeypatch.setattr(several, "failing", failing := threading.Event())
    monkeypatch.setattr(several, "let", threading.Semaphore(0))
    several.closed.set()
    yield failing
    several.closed.clear()


def _row(name: str, clock: str = "12:30:00") -> dict[str, object]:
    return {"key": "k", "at": f"2025-04-05T{clock}Z", "name": name}


def _job(surroundings: Surroundings, shape: str, *, partitions: int = 1, sources: tuple[str, ...] = ("a",)) -> TestedJob:
    job = surroundings.job("tests.jobs.spark.apps.several", sources=dict.fromkeys(sources, partitions), parameters={"shape": shape})
    other = {"files": {"path": f"{job.name}-other", "prefix": "part-", "roll": {"interval": "1ms"}}}
    return job.edit(lambda spec: spec["sinks"].update(other=other, gate={"function": {"name": "gate"}}))


def _shape(job: TestedJob, shape: str) -> TestedJob:
    return job.edit(lambda spec: spec["parameters"].update(shape=shape))


def _names(job: TestedJob, sink: str = "out") -> list[str]:
    path = job.name if sink == "out" else f"{job.name}-other"
    files = recorded_run.output_files(job.around.s3, OUTPUT, path)
    return sorted(row["name"] for row in recorded_run.output_rows(job.around.s3, OUTPUT, files))


def _totals(running: Running) -> tuple[Counter[str], Counter[str]]:
    """Rows read and rows by tag, summed over the last events of the queries."""
    last = {batch["query"]: batch for batch in running.batches}
    rows_in: Counter[str] = Counter()
    tags: Counter[str] = Counter()
    for batch in last.values():
        rows_in.update(batch["totalRowsIn"])
        tags.update(batch["totalTags"])
    return rows_in, tags


def _uri(job: TestedJob, query: str = "") -> str:
    return f"s3a://{CHECKPOINTS}/{job.name}/checkpoints/1" + (f"/queries/{query}" if query else "")


def test_what_two_queries_read_of_one_source_is_counted_and_written_aside_by_the_first(surroundings: Surroundings) -> None:
    job = _job(surroundings, "one source", partitions=2)
    job.feed("a", _row("one"), _row("odd"), _row("skip"), b"broken")
    job.feed("a", _row("strange"), _row("strange"), partition=1)
    with job.running() as running:
        running.until_read({"a": [4, 2]})
        job.feed("a", _row("far ahead", "12:50:00"))
        job.feed("a", _row("far ahead", "12:50:00"), partition=1)
        running.until_read({"a": [5, 3]})
        job.feed("a", _row("late", "12:31:00"))
        running.until_read({"a": [6, 3]})
    assert _names(job) == ["far ahead", "far ahead", "one", "strange", "strange"]
    assert _names(job, "other") == ["far ahead", "far ahead", "one"]
    aside = job.side_outputs("errors")
    reasons = ["a strange row", "a strange row", "an odd row", "the value is not JSON of the source's schema"]
    assert sorted(record["reason"] for record in aside) == reasons
    assert len({record["id"] for record in aside}) == 4
    assert [record["offset"] for record in job.side_outputs("late")] == [5]
    rows_in, tags = _totals(running)
    assert rows_in == {"a": 9}
    assert tags == {"data": 8, "odd": 3, "filtered": 1, "quarantined": 1, "late": 1}
    # By its own watermark each query knows which rows it has not taken.
    late = {batch["query"]: batch["totalLate"] for batch in running.batches}
    assert late == {job.name: {"a": 1}, f"{job.name}.other": {"a": 1}}


def test_ids_of_the_same_rows_that_two_queries_divert_differ(surroundings: Surroundings) -> None:
    job = _job(surroundings, "two sources", sources=("a", "b"))
    job.feed("a", _row("odd"))
    job.feed("b", _row("odd"))
    with job.running() as running:
        running.until_read({"a": [1], "b": [1]})
    assert len({record["id"] for record in job.side_outputs("errors")}) == 2


def test_queries_of_different_sources_have_watermarks_and_events_of_their_own(surroundings: Surroundings) -> None:
    job = _job(surroundings, "two sources", sources=("a", "b"))
    job.feed("a", _row("one"), b"broken")
    job.feed("b", _row("two", "11:00:00"), _row("skip", "11:00:00"))
    with job.running() as running:
        running.until_read({"a": [2], "b": [2]})
    assert (_names(job), _names(job, "other")) == (["one"], ["two"])
    assert {event["query"]: list(event["offsets"]) for event in (running.reading, *running.others)} == {
        job.name: ["a"],
        f"{job.name}.other": ["b"],
    }
    assert running.reading["queries"] == [job.name, f"{job.name}.other"]
    first, second = ({batch["query"]: batch for batch in running.batches}[name] for name in (job.name, f"{job.name}.other"))
    assert (first["totalRowsIn"], first["totalTags"]) == ({"a": 2}, {"data": 1, "quarantined": 1})
    assert (second["totalRowsIn"], second["totalTags"]) == ({"b": 2}, {"data": 1, "filtered": 1})
    apart_ms = first["watermarks"]["inForceMs"] - second["watermarks"]["inForceMs"]
    assert apart_ms == 90 * 60_000
    assert {place["topic"] for place in job.side_outputs("errors")} == {job.topics["a"]}
    assert {committed["query"]: set(committed["ends"]) for committed in running.committed} == {
        job.name: {job.topics["a"]},
        f"{job.name}.other": {job.topics["b"]},
    }


def test_queries_go_on_after_a_stop(surroundings: Surroundings) -> None:
    job = _job(surroundings, "one source")
    for number, name in enumerate(("one", "two", "three"), start=1):
        job.feed("a", _row(name))
        with job.running() as running:
            running.until_read({"a": [number]})
            assert {batch["token"] for batch in running.batches} == {number}
    assert _names(job) == _names(job, "other") == ["one", "three", "two"]
    rows_in, tags = _totals(running)
    assert (rows_in, tags) == ({"a": 3}, {"data": 6})


def test_a_lease_that_is_created_anew_continues_after_the_tokens_of_all_queries(surroundings: Surroundings) -> None:
    job = _job(surroundings, "one source")
    job.feed("a", _row("one"))
    with job.running() as running:
        running.until_read({"a": [1]})
    checkpoint = Checkpoint(_uri(job))
    checkpoint.of_query("other").record(BatchRecord(batch=7, token=9))
    assert (checkpoint.greatest_token(), checkpoint.queries()) == (9, ["other"])


def test_if_a_query_fails_the_others_finish_their_micro_batch_and_the_job_fails(surroundings: Surroundings, gate: threading.Event) -> None:
    job = _job(surroundings, "gated")
    job.feed("a", _row("one"))
    gate.set()
    with job.running() as running:
        several.entered.get(timeout=60)
        while not any(committed["query"] == job.name for committed in running.committed):
            running.next()
        several.let.release()
        running.wait("failed")
    assert isinstance(running.failure, SinkFunctionFailed)
    assert "the other side is gone" in running.failure.render()
    assert (_names(job), _names(job, "other")) == (["one"], [])
    gate.clear()
    several.let.release(10)
    job.feed("a", _row("two"))
    with job.running() as running:
        running.until_read({"a": [2]})
    assert _names(job) == _names(job, "other") == ["one", "two"]


def test_a_failure_ends_a_query_that_is_within_a_micro_batch_after_it(surroundings: Surroundings, gate: threading.Event) -> None:
    job, record = _job(surroundings, "gated"), Checkpoint.record
    job.feed("a", _row("one"))

    def fails(checkpoint: Checkpoint, entry: BatchRecord) -> None:
        if checkpoint.uri == _uri(job):
            # The other query is within its micro-batch, and ends it only after this one has failed.
            several.entered.get(timeout=60)
            threading.Timer(0, lambda: several.let.release(10)).start()
            raise Killed
        record(checkpoint, entry)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Checkpoint, "record", fails)
        with job.running() as running:
            running.wait("failed")
    assert "Killed" in str(running.failure)
    assert _names(job, "other") == ["one"]
    assert Checkpoint(_uri(job, "gate")).last_record().batch == 0
    several.closed.clear()
    job.feed("a", _row("two"))
    with job.running() as running:
        running.until_read({"a": [2]})
    assert _names(job) == _names(job, "other") == ["one", "two"]


@pytest.mark.parametrize("query", ["", "other"])
@pytest.mark.chaos
def test_a_query_that_is_killed_between_the_commits_of_the_other_loses_and_repeats_nothing(surroundings: Surroundings, query: str) -> None:
    job, record = _job(surroundings, "one source"), Checkpoint.record
    job.feed("a", _row("one"), b"broken")

    def killed(checkpoint: Checkpoint, entry: BatchRecord) -> None:
        if checkpoint.uri == _uri(job, query):
            raise Killed
        record(checkpoint, entry)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Checkpoint, "record", killed)
        with job.running() as running:
            running.wait("failed")
    job.feed("a", _row("strange"))
    with job.running() as running:
        running.until_read({"a": [3]})
    assert _names(job) == ["one", "strange"]
    assert _names(job, "other") == ["one"]
    assert len({record["id"] for record in job.side_outputs("errors")}) == 2
    assert _totals(running) == ({"a": 3}, {"data": 3, "odd": 1, "quarantined": 1})


@pytest.mark.chaos
def test_partitions_added_while_the_queries_run_are_read_by_both(surroundings: Surroundings) -> None:
    job = _job(surroundings, "one source")
    job.feed("a", _row("one"))
    with job.running() as running:
        running.until_read({"a": [1]})
        admin = AdminClient({"bootstrap.servers": surroundings.brokers})
        admin.create_partitions([NewPartitions(job.topics["a"], 2)])[job.topics["a"]].result()
        job.feed("a", _row("two"), partition=1)
        running.until_read({"a": [1, 1]})
    assert _names(job) == _names(job, "other") == ["one", "two"]
    assert _totals(running) == ({"a": 2}, {"data": 4})


def test_a_bounded_job_ends_when_all_of_its_queries_have_ended(surroundings: Surroundings, gate: threading.Event) -> None:
    job = _job(surroundings, "gated").edit(lambda spec: spec.update(trigger="availableNow"))
    job.feed("a", _row("one"), _row("two"))
    with job.running() as running:
        several.entered.get(timeout=60)
        while not any(committed["query"] == job.name for committed in running.committed):
            running.next()
        several.let.release(10)
        running.wait("stopped")
    assert _names(job) == _names(job, "other") == ["one", "two"]


def _bounded(surroundings: Surroundings) -> TestedJob:
    job = _job(surroundings, "counts and rows").edit(lambda spec: spec.update(trigger="availableNow", bounded=True))
    job.feed("a", _row("one", "12:30:01"), _row("two", "12:30:02"), _row("three", "12:30:11"), b"broken")
    return job


def _hold_it_is_finished(job: TestedJob, running: Running) -> None:
    assert [(row["key"], row["n"]) for row in job.rows()] == [("k", 1), ("k", 2)]
    assert _names(job, "other") == ["one", "three", "two"]
    assert len({record["id"] for record in job.side_outputs("errors")}) == 1
    assert running.heard.count("finished") == 2
    with pytest.raises(BoundedRunOver), job.running():
        pass


def test_a_bounded_run_is_finished_when_all_queries_have_closed(surroundings: Surroundings) -> None:
    job = _bounded(surroundings)
    with job.running() as running:
        finished = [running.wait("finished"), running.wait("finished")]
        running.wait("stopped")
    assert [event["query"] for event in finished] == [job.name, f"{job.name}.other"]
    assert [event["totalRowsIn"] for event in finished] == [{"a": 4}, {}]
    _hold_it_is_finished(job, running)


@pytest.mark.chaos
@pytest.mark.parametrize("query", ["", "other"])
def test_a_bounded_run_goes_on_for_the_query_that_had_not_ended(surroundings: Surroundings, query: str) -> None:
    job, record = _bounded(surroundings), Checkpoint.record

    def killed(checkpoint: Checkpoint, entry: BatchRecord) -> None:
        if checkpoint.uri == _uri(job, query):
            raise Killed
        record(checkpoint, entry)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Checkpoint, "record", killed)
        with job.running() as running:
            running.wait("failed")
    assert "finished" not in running.heard
    # After the end that was decided.
    job.feed("a", _row("too late", "12:40:00"))
    with job.running() as running:
        running.wait("stopped")
    _hold_it_is_finished(job, running)


@pytest.mark.chaos
def test_an_output_that_is_added_later_leaves_the_state_of_the_first(surroundings: Surroundings) -> None:
    job = _job(surroundings, "counts")
    job.feed("a", _row("one", "12:30:01"), _row("two", "12:30:02"))
    with job.running() as running:
        running.until_read({"a": [2]})
    _shape(job, "counts and rows")
    job.feed("a", _row("three", "12:30:03"), _row("four", "12:31:00"))
    with job.running() as running:
        running.until_read({"a": [4]})
    assert job.rows() == [{"key": "k", "n": 3}]
    assert _names(job, "other") == ["four", "one", "three", "two"]
    rows_in, _ = _totals(running)
    assert rows_in == {"a": 4}


@pytest.mark.chaos
def test_an_output_that_is_added_later_begins_where_the_jobs_consumer_group_is(surroundings: Surroundings) -> None:
    job = _job(surroundings, "counts")
    job.edit(lambda spec: spec["sources"]["a"]["kafka"].update(startingOffsets="committed-or-earliest", commitOffsets=True))
    job.feed("a", _row("one"), _row("two"))
    with job.running() as running:
        running.until_read({"a": [2]})
    _shape(job, "counts and rows")
    job.feed("a", _row("three"))
    with job.running() as running:
        running.until_read({"a": [3]})
    assert _names(job, "other") == ["three"]
    assert {batch["query"]: batch["totalRowsIn"] for batch in running.batches}[job.name] == {"a": 3}


def test_outputs_that_change_their_order_are_refused(surroundings: Surroundings) -> None:
    job = _job(surroundings, "counts and rows")
    job.feed("a", _row("one"))
    with job.running() as running:
        running.until_read({"a": [1]})
    with pytest.raises(BadDeclaration, match="the order of the checkpoint"), _shape(job, "rows and counts").running():
        pass


def test_a_sink_of_two_queries_is_refused(surroundings: Surroundings) -> None:
    with pytest.raises(BadDeclaration, match="a separate sink for each"), _job(surroundings, "one sink").running():
        pass


def test_queries_of_a_driver_that_lost_its_lease_all_stop(surroundings: Surroundings) -> None:
    job = replace(_job(surroundings, "one source"), lease_s=3.0)
    job.feed("a", _row("one"))
    with job.running() as running:
        running.until_read({"a": [1]})
        _take_over(job)
        running.wait("failed")
    assert isinstance(running.failure, LeaseLost)
    assert not surroundings.session.streams.active
    _let_go(job)
    job.feed("a", _row("two"))
    with job.running() as running:
        running.until_read({"a": [2]})
    assert _names(job) == _names(job, "other") == ["one", "two"]


def _gauges(surroundings: Surroundings) -> dict[str, Any]:
    registry: Any = surroundings.session._jsparkSession.sparkContext().dagScheduler().metricsSource().metricRegistry()
    return {name: registry.getGauges().get(name).getValue() for name in registry.getNames() if name.startswith("penstock.")}


def test_lag_is_that_of_the_query_that_is_the_furthest_behind_and_gauges_are_kept_apart(
    surroundings: Surroundings, gate: threading.Event
) -> None:
    job = _job(surroundings, "gated")
    job.edit(lambda spec: spec["sources"]["a"]["kafka"].update(maxOffsetsPerTrigger=1))
    job.feed("a", *(_row(str(number)) for number in range(4)))
    with job.running() as running:
        several.entered.get(timeout=60)
        several.let.release()
        several.entered.get(timeout=60)
        while len([one for one in running.committed if one["query"] == job.name]) < 4:
            running.next()
        while (event := running.next())[0] != "idle":
            pass
        # The other one has committed one of four.
        assert event[1] == {"query": job.name, "lagRecords": 3}
        assert _gauges(surroundings)["penstock.lagRecords"] == 3
        several.let.release(10)
        running.until_read({"a": [4]})
    watermark_ms = running.batches[-1]["watermarks"]["inForceMs"]
    shown = _gauges(surroundings)
    assert shown["penstock.watermarkMs"] == shown["penstock.watermarkMs.queries.gate"] == watermark_ms
    assert shown["penstock.lagRecords"] == 0
    assert json.loads(json.dumps(running.committed[-1]["lagRecords"])) == 0
