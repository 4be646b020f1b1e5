"""Formats and kinds of event time, rows that are ahead, idle inputs, and watermarks that follow the clock."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructType

from penstock.jobs.driver.session import counting_conf
from penstock.jobs.errors import BadDeclaration
from penstock.jobs.local.replay import moment_ms
from penstock.jobs.spec.sources import EventTime
from penstock.jobs.storage.checkpoint import Checkpoint
from penstock.jobs.stream.event_time import judging
from penstock.jobs.stream.event_time.timestamps import event_time
from penstock.jobs.stream.side_outputs import REASON
from penstock.jobs.stream.skew import observe_keys
from penstock.jobs.stream.streams import TIME
from tests.jobs.spark.blocks import Input, row, run
from tests.jobs.spark.running import CHECKPOINTS, Running, Surroundings
from tests.jobs.spark.task_properties import local_properties

HALF_PAST_MS = 1743856200000
OF_FORMAT = {
    "iso-8601": ["2025-04-05T18:00:00.1239+05:30", "2025-04-05T12:30:00Z", "1743856200", "2025-04-05", "0000-01-01T00:00:00Z", ""],
    "epoch-seconds": ["1743856200", "1743856200.1239", "-0.001", " 1743856200", "1e9", "253402300800", "9" * 20, "NaN", "12:30"],
    "epoch-millis": ["1743856200123", "1743856200123.9", "-1", "253402300799999", "253402300800000", "-62135596800001", "1743856200123 "],
    "epoch-micros": ["1743856200123999", "-1", "99999999999999999999", "0x10"],
}


@pytest.mark.parametrize("form", OF_FORMAT)
def test_a_text_is_read_by_its_format_as_the_oracle_reads_it(session: SparkSession, form: str) -> None:
    texts = OF_FORMAT[form]
    kind = StringType()
    frame = session.createDataFrame([(text,) for text in texts], "at STRING")
    times_ms = [row["ms"] for row in frame.select(F.unix_millis(event_time(F.col("at"), kind, form, "at")).alias("ms")).collect()]
    assert dict(zip(texts, times_ms, strict=True)) == {text: moment_ms(text, form) for text in texts}


def test_numbers_and_moments_are_read_too_and_what_would_overflow_is_no_moment(session: SparkSession) -> None:
    schema = _schema("whole BIGINT, part DOUBLE, exact DECIMAL(20, 6), moment TIMESTAMP")
    moment = datetime(2025, 4, 5, 12, 30, 0, 123999, tzinfo=UTC)
    rows = [(1743856200, 1743856200.123999, None, moment), (2**63 - 1, float("nan"), None, None), (-1, float("inf"), None, None)]
    frame = session.createDataFrame(rows, schema).withColumn("exact", F.lit("1743856200.123999").cast("decimal(20, 6)"))
    read = [F.unix_millis(event_time(F.col(f.name), f.dataType, "epoch-seconds", f.name)).alias(f.name) for f in schema.fields]
    assert [tuple(row) for row in frame.select(*read).collect()] == [
        (HALF_PAST_MS, HALF_PAST_MS + 123, HALF_PAST_MS + 123, HALF_PAST_MS + 123),
        (None, None, HALF_PAST_MS + 123, None),
        (-1000, None, HALF_PAST_MS + 123, None),
    ]


def test_a_type_that_can_not_have_the_format_is_rejected_when_the_app_declares_it() -> None:
    schema = _schema("flag BOOLEAN, whole BIGINT")
    for name, form in (("flag", "epoch-millis"), ("whole", "iso-8601")):
        with pytest.raises(BadDeclaration, match="JOB-004"):
            event_time(F.col(name), schema[name].dataType, form, f'job.source("a"), field {name}')


def _schema(ddl: str) -> StructType:
    schema = StructType.fromDDL(ddl)
    assert isinstance(schema, StructType)
    return schema


def _time(**given: Any) -> EventTime:
    return EventTime.model_validate(given)


def _judged(
    session: SparkSession, time: EventTime, rows: Sequence[tuple[str | None, datetime]], watermark: str = ""
) -> list[dict[str, Any]]:
    """Judges rows (their field ``at``, and when the broker received them) in a micro-batch of `HALF_PAST_MS`."""
    schema = _schema("at STRING")
    columns = "at STRING, timestamp TIMESTAMP, _reason STRING"
    frame = session.createDataFrame([(at, taken, None) for at, taken in rows], columns)
    frame = judging.judged(session, judging.timed(frame, "a", time, F.col, schema), time)
    judged = frame.select(REASON, F.unix_millis(TIME).alias("ms"), judging.BEHIND, judging.LATE)
    with local_properties(session, {"penstock.watermark": watermark, "penstock.batchTime": str(HALF_PAST_MS)}):
        return [row.asDict() for row in judged.collect()]


def test_a_row_is_late_beyond_the_allowed_lateness_and_wherever_the_state_is_cleared(session: SparkSession) -> None:
    time = _time(field="at", format="epoch-millis", allowedLateness="10ms")
    taken = datetime(2025, 4, 5, tzinfo=UTC)
    rows = [(text, taken) for text in ("100", "99", "92", "91", "89", "x")] + [(None, taken)]
    judged = _judged(session, time, rows, watermark="100 92")
    assert [(row[judging.BEHIND], row[judging.LATE]) for row in judged] == [
        (None, False),
        (1, False),
        (8, False),
        (9, True),
        (11, True),
        (None, False),
        (None, False),
    ]
    assert [row[REASON] for row in judged] == [*[None] * 5, "at is not milliseconds since 1970", "at is missing"]


def test_ingestion_and_processing_time_need_no_field(session: SparkSession) -> None:
    taken = datetime(2025, 4, 5, 12, 30, 0, 123999, tzinfo=UTC)
    (ingested,) = _judged(session, _time(kind="ingestion"), [("nothing", taken)])
    assert ingested["ms"] == HALF_PAST_MS + 123
    (processed,) = _judged(session, _time(kind="processing"), [("nothing", taken)])
    assert processed["ms"] == HALF_PAST_MS
    # A clock that was set back makes no row late: it continues at the watermark's time.
    ahead_ms = HALF_PAST_MS + 3_600_000
    (put_back,) = _judged(session, _time(kind="processing"), [("nothing", taken)], watermark=f"{ahead_ms} {ahead_ms}")
    assert (put_back["ms"], put_back[judging.LATE]) == (ahead_ms, False)


def test_a_record_is_ahead_of_its_micro_batch_by_more_than_the_spec_allows(session: SparkSession) -> None:
    time = _time(field="at", format="epoch-millis", maxAhead="1s")
    taken = datetime(2025, 4, 5, tzinfo=UTC)
    judged = _judged(session, time, [(str(HALF_PAST_MS + 1_000), taken), (str(HALF_PAST_MS + 1_001), taken)])
    assert [row[REASON] for row in judged] == [None, "ahead of the clock by ms: 1001"]


def _event(name: str, time: datetime | str) -> dict[str, str]:
    at = time.isoformat() if isinstance(time, datetime) else f"2025-04-05T{time}Z"
    return {"key": "k", "at": at, "name": name}


def test_an_event_a_day_ahead_goes_to_quarantine_and_carries_nothing_with_it(surroundings: Surroundings) -> None:
    now = datetime.now(UTC).replace(microsecond=0)
    job = surroundings.job("tests.jobs.spark.apps.copy_rows", sources={"a": 2})
    with job.running() as running:
        job.feed("a", _event("now", now), _event("a day ahead", now + timedelta(days=1)))
        job.feed("a", _event("earlier", now - timedelta(minutes=1)), partition=1)
        running.until_read({"a": [2, 1]})
        # Both are behind partition 0's watermark, one of them behind the job's.
        events = _event("in time", now - timedelta(seconds=70)), _event("late", now - timedelta(seconds=71))
        job.feed("a", *events, _event("no clock yet", datetime.fromtimestamp(0, UTC)))
        (batch, *_) = running.until_read({"a": [5, 1]})
        gauges = _gauges(surroundings.session)
    assert batch["watermarks"]["inputs"]["a"] == int((now - timedelta(seconds=70)).timestamp() * 1000)
    ahead, ancient = job.side_outputs("errors")
    assert json.loads(ahead["value"])["name"] == "a day ahead"
    assert json.loads(ancient["value"])["name"] == "no clock yet"
    assert ancient["reason"] == "not after 1970-01-01T00:00:00Z: 1970-01-01 00:00:00"
    reason, ahead_ms = ahead["reason"].rsplit(" ", 1)
    assert reason == "ahead of the clock by ms:"
    assert 0 <= 86_400_000 - int(ahead_ms) < 60_000
    assert [row["name"] for row in job.rows()] == ["earlier", "in time", "now"]
    assert [json.loads(late["value"])["name"] for late in job.side_outputs("late")] == ["late"]
    topic, watermark_ms = job.topics["a"], batch["watermarks"]["inForceMs"]
    assert {name: value for name, value in gauges.items() if name.startswith(("penstock.watermark", "penstock.rows", "penstock.l"))} == {
        "penstock.watermarkMs": watermark_ms,
        "penstock.watermarkMs.a": watermark_ms,
        f"penstock.watermarkMs.a.{topic}-0": watermark_ms + 60_000,
        f"penstock.watermarkMs.a.{topic}-1": watermark_ms,
        f"penstock.rows.a.{topic}-0": 3,
        f"penstock.rows.a.{topic}-1": 0,
        "penstock.lateRows.a": 1,
        "penstock.lagRecords": 0,
    }


def test_a_partition_that_lags_in_a_catch_up_is_not_idle_and_loses_no_row(surroundings: Surroundings) -> None:
    # By the time that the slower partition is read, the other one is an hour ahead and has been idle for longer than the idleness.
    time = {"field": "at", "outOfOrderness": "10s", "idleness": "1ms"}
    job = surroundings.job("tests.jobs.spark.apps.copy_rows", sources={"a": 2}, time=time)
    job.edit(lambda spec: spec["sources"]["a"]["kafka"].update(maxOffsetsPerTrigger=8))
    job.feed("a", *(_event(f"fast {n}", f"13:0{n}:00") for n in range(3)), partition=0)
    job.feed("a", *(_event(f"slow {n:02d}", f"12:{n:02d}:00") for n in range(21)), partition=1)
    with job.running() as running:
        running.until_read({"a": [3, 21]})
    assert len(running.batches) >= 3
    assert len(job.rows()) == 24
    assert job.side_outputs("late") == []


@pytest.mark.chaos
def test_an_idle_input_holds_no_join_back_across_a_restart_and_takes_part_again_when_it_returns(surroundings: Surroundings) -> None:
    time = {"field": "at", "outOfOrderness": "10s", "idleness": "1s"}
    job = surroundings.job("tests.jobs.spark.apps.left_pairs", sources={"a": 1, "b": 1}, time=time)
    job.feed("a", _event("a1", "12:30:00"))
    job.feed("b", _event("b1", "12:30:00"))
    with job.running() as running:
        running.until_read({"a": [1], "b": [1]})
        assert running.batches[-1]["watermarks"]["inForceMs"] == HALF_PAST_MS - 10_000
    with job.running() as running:
        # b receives nothing more; a receives rows until b has been idle for a second.
        fed = _fed_until(running, lambda batch: batch["watermarks"]["inForceMs"] > HALF_PAST_MS, first=2)
        watermarks = running.batches[-1]["watermarks"]
        assert watermarks["inForceMs"] == watermarks["inputs"]["a"] > watermarks["inputs"]["b"] == HALF_PAST_MS - 10_000
    job.feed("b", _event("late b", "12:30:10"), _event("b2", "13:30:00"))
    job.feed("a", _event("last a", "14:30:00"))
    with job.running() as running:
        (batch, *_) = running.until_read({"a": [fed + 1], "b": [3]})
        assert batch["watermarks"]["inForceMs"] == HALF_PAST_MS + 3_600_000 - 10_000, "b holds it back again"
    rows = [{name: value for name, value in row.items() if value is not None} for row in job.rows()]
    # b1 is within a minute of the first two; the others, except the last, are known to be unmatched.
    assert [row for row in rows if "right" in row] == [{"left": "a1", "right": "b1"}, {"left": "a2", "right": "b1"}]
    assert sorted(row["left"] for row in rows if "right" not in row) == sorted(f"a{number}" for number in range(3, fed + 1))
    assert [json.loads(late["value"])["name"] for late in job.side_outputs("late")] == ["late b"]


def _fed_until(running: Running, reached: Callable[[dict[str, Any]], bool], first: int) -> int:
    """Feeds input a, a minute apart, until a micro-batch meets a condition; returns its number of records by then."""
    number = first
    while True:
        running.job.feed("a", _event(f"a{number}", f"12:{29 + number}:00"))
        running.until_read({"a": [number]})
        if reached(running.batches[-1]):
            return number
        number += 1


def test_the_clock_closes_what_is_open_once_all_inputs_are_idle_where_the_spec_says_so(surroundings: Surroundings) -> None:
    time = {"field": "at", "outOfOrderness": "10s", "idleness": "1s"}
    job = surroundings.job("tests.jobs.spark.apps.left_pairs", sources={"a": 1, "b": 1}, time=time, whenIdle="clock")
    job.feed("a", _event("alone", "12:30:00"))
    with job.running() as running:
        _until(running, lambda batch: (batch["watermarks"]["inForceMs"] or 0) > HALF_PAST_MS + 86_400_000)
        running.wait("idle")
        first = running.batches[-1]
        assert first["watermarks"]["inForceMs"] == first["timeMs"] - 10_000
        _until(running, lambda batch: batch["watermarks"]["inForceMs"] > first["watermarks"]["inForceMs"])
    assert [row["left"] for row in job.rows()] == ["alone"]
    assert first["totalRowsIn"] == {"a": 1, "b": 0}
    assert sum(committed["rows"] for committed in running.committed) == 1, "the heartbeat's own rows are not the job's"


@pytest.fixture
def counting(session: SparkSession) -> Iterator[None]:
    """Lets RocksDB count the rows of the state, as a driver that reports open windows does."""
    conf = counting_conf(open_windows=True)
    for key, value in conf.items():
        session.conf.set(key, value)
    yield
    for key in conf:
        session.conf.unset(key)


@pytest.mark.usefixtures("counting")
def test_windows_of_processing_time_close_by_the_clock_with_the_same_code(surroundings: Surroundings) -> None:
    job = surroundings.job("tests.jobs.spark.apps.counts", sources={"a": 2}, time={"kind": "processing"})
    job.edit(lambda spec: spec["sinks"]["out"]["files"].update(bucketBy="none"))
    job.report_open_windows = True
    job.feed("a", _event("one", "12:30:00"), {"key": "k", "name": "two"})
    with job.running() as running:
        (batch, *_) = running.until_read({"a": [2, 0]})
        taken_ms = batch["timeMs"]
        assert running.committed[-1]["openWindows"] == 1
        while running.wait("committed")["openWindows"]:
            pass
        running.wait("idle")
    checkpoint = Checkpoint(f"s3a://{CHECKPOINTS}/{job.name}/checkpoints/1", s3=surroundings.s3)
    # RocksDB says the size of its files; of none in the first micro-batch's record, which Spark has not reported yet.
    first = checkpoint.kept_record(0)
    assert first is not None and first.state_bytes is None
    assert checkpoint.last_record().state_bytes is not None
    (row,) = job.rows()
    assert (row["n"], row["names"]) == (2, "one two")
    assert datetime.fromisoformat(row["window_start"]).timestamp() * 1000 == taken_ms // 10_000 * 10_000
    assert job.side_outputs("late") == []


def _until(running: Running, reached: Callable[[dict[str, Any]], bool]) -> None:
    """Waits until a micro-batch that meets a condition is committed."""
    while True:
        running.wait("committed")
        if reached(running.batches[-1]):
            return


def _gauges(session: SparkSession) -> dict[str, Any]:
    registry: Any = session._jsparkSession.sparkContext().dagScheduler().metricsSource().metricRegistry()
    return {name: registry.getGauges().get(name).getValue() for name in registry.getNames() if name.startswith("penstock.")}


def test_the_hottest_keys_of_a_micro_batch_are_reported_without_rows_of_side_outputs(surroundings: Surroundings) -> None:
    rows = [
        [*(row("10", user="hot") for _ in range(5)), row("11", user="b"), row("11", user="b"), *(row(None, user="x") for _ in range(9))],
        [row("12", user=None), row("12", user=""), row("12", user=""), *(row("12", user=f"u{n}") for n in range(9))],
    ]
    ran = run(surroundings, {"a": Input("user STRING", rows)}, lambda streams: observe_keys(streams["a"], "users", "user"))
    first, second = [batch["keys"]["users"] for batch in ran.events]
    assert first == {"rows": 7, "hottest": [{"key": "hot", "rows": 5}, {"key": "b", "rows": 2}]}
    assert (second["rows"], len(second["hottest"]), second["hottest"][0]) == (12, 5, {"key": "", "rows": 2})
