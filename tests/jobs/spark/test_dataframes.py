"""Apps that use Spark's own API between `job.source` and `job.write`."""

from __future__ import annotations

import textwrap
import uuid
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from penstock.jobs.driver.errors import NotRepeatable, OperatorsDiffer
from penstock.jobs.errors import BadDeclaration
from penstock.jobs.stream.errors import AppFailed
from penstock.sizing.errors import PenstockError
from tests.jobs.spark.running import Surroundings, TestedJob

Job = Callable[..., TestedJob]
SCHEMA = "key STRING NOT NULL, at STRING, n INT"


@pytest.fixture
def job(surroundings: Surroundings, monkeypatch: pytest.MonkeyPatch) -> Job:
    """Makes a job of an app's text: the lines of `build`, with F and T, Spark's functions and types, and what comes before it."""

    def made(build: str, before: str = "", *, sources: Mapping[str, int] | None = None, **spec: Any) -> TestedJob:
        tested = surroundings.job(name := f"app_{uuid.uuid4().hex[:8]}", sources=sources or {"a": 1}, **spec)
        tested.edit(lambda spec: spec["sinks"]["out"]["files"].update(bucketBy="none"))
        late = '\nif "a" in job.sources and job.sources["a"].timed:\n    job.side_output("late", Tag.LATE)'
        body = textwrap.indent(f'SCHEMA = "{SCHEMA}"\n{textwrap.dedent(build)}\njob.side_output("errors"){late}\n', "    ")
        head = "import pandas as pd\nfrom pyspark.sql import functions as F\nfrom penstock import Job, Tag, aggregate, tumbling, Stream\n"
        text = f"{head}{textwrap.dedent(before)}\ndef build(job: Job) -> None:\n{body}"
        (tested.spec.parent / f"{name}.py").write_text(text, encoding="utf-8")
        monkeypatch.syspath_prepend(str(tested.spec.parent))
        return tested

    return made


def _row(time: str, key: str = "k", n: int = 1) -> dict[str, Any]:
    return {"key": key, "at": f"2025-04-05T12:{time}Z", "n": n}


def _ran(job: TestedJob, *rows: Mapping[str, Any] | bytes, then: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
    """The output of rows, and of one that advances the watermark in a later micro-batch."""
    job.feed("a", *rows)
    with job.running() as running:
        running.until_read({"a": [len(rows)]})
        if then is not None:
            job.feed("a", then)
            running.until_read({"a": [len(rows) + 1]})
    return job.rows()


def _refused(job: TestedJob, kind: type[PenstockError] = BadDeclaration) -> PenstockError:
    with pytest.raises(kind) as raised, job.running() as running:
        running.wait("stopped")
    return raised.value


def test_expressions_functions_and_pandas_udfs_of_spark_work_and_side_rows_are_not_lost(job: Job) -> None:
    tested = job("""
        @F.pandas_udf("int")
        def doubled(n: pd.Series) -> pd.Series:
            return n * 2

        rows = job.source("a", SCHEMA).df
        kept = rows.where(F.col("n") > 0).withColumn("twice", doubled("n")).withColumn("upper", F.udf(lambda k: k.upper())("key"))
        job.write(kept.select("key", "twice", "upper"), "out")
    """)
    tested.feed("a", _row("30:00", n=2), b"broken", _row("30:01", n=-1), _row("31:00", n=3))
    with tested.running() as running:
        (batch,) = running.until_read({"a": [4]})
    assert tested.rows() == [{"key": "k", "twice": 4, "upper": "K"}, {"key": "k", "twice": 6, "upper": "K"}]
    assert [record["value"] for record in tested.side_outputs("errors")] == ["broken"]
    # What Spark's filter removes is not counted.
    assert batch["tags"] == {"data": 2, "quarantined": 1}
    assert batch["rowsIn"] == {"a": 4}


def _as_csv(row: Mapping[str, Any]) -> bytes:
    return ",".join(str(row.get(name, "")) for name in ("key", "at", "n", "seen")).encode()


@pytest.mark.parametrize(
    ("form", "written"),
    [
        ("json", lambda row: row),
        ("csv", _as_csv),
        ("debezium", lambda row: {"op": "c", "after": row}),
    ],
)
def test_an_app_sees_no_field_of_a_record_that_is_not_data(job: Job, form: str, written: Callable[[Mapping[str, Any]], Any]) -> None:
    # Each expression of the app would fail on the last two: a year that Python does not have, and a division by zero.
    tested = job("""
        rows = job.source("a", SCHEMA + ", seen TIMESTAMP").df.where("10 / n > 1")
        job.write(rows.select("key", F.udf(lambda seen: str(seen.year))("seen").alias("year")), "out")
    """)
    tested.edit(lambda spec: spec["sources"]["a"]["kafka"].update(value=form))
    rows = (
        {**_row("30:00", n=2), "seen": "2025-04-05T12:00:00Z"},
        {**_row("30:01", n=2), "seen": "12025-04-05T12:00:00Z"},
        {"n": 0, "seen": "2025-04-05T12:00:00Z"},
    )
    tested.feed("a", *map(written, rows))
    with tested.running() as running:
        (batch,) = running.until_read({"a": [3]})
    assert tested.rows() == [{"key": "k", "year": "2025"}]
    assert sorted(record["reason"] for record in tested.side_outputs("errors")) == [
        "key is missing",
        "seen is not within the years 0001 to 9999",
    ]
    assert batch["tags"] == {"data": 1, "quarantined": 2}


def test_an_aggregation_of_sparks_closes_by_penstocks_watermark(job: Job) -> None:
    tested = job(
        """
        rows = job.source("a", SCHEMA).df
        counts = rows.groupBy(F.window("event_time", "10 seconds"), "key").agg(F.sum("n").alias("n"))
        job.write(counts.withColumn("end", F.window_time("window")).select("key", "n", "end"), "out", event_time="end")
        """,
        'OPERATORS = {"read": None, "sum": "other", "write": None}',
    )
    ran = _ran(tested, _row("30:00", n=1), _row("30:09", n=2), _row("30:10", n=4), then=_row("30:20", n=8))
    assert ran == [{"key": "k", "n": 3, "end": "2025-04-05T12:30:09.999Z"}]


def test_a_group_that_no_event_time_closes_is_updated(job: Job) -> None:
    tested = job(
        'job.write(job.source("a", SCHEMA).df.groupBy("key").agg(F.sum("n").alias("n")), "out")',
        'OPERATORS = {"read": None, "sum": "other", "write": None}',
    )
    assert _ran(tested, _row("30:00", n=1), then=_row("30:09", n=2)) == [{"key": "k", "n": 1}, {"key": "k", "n": 3}]


def test_a_join_of_two_sources_by_sparks_own_api_is_strict_about_the_watermark(job: Job) -> None:
    tested = job(
        """
        left = job.source("a", SCHEMA).dataframe(event_time="left_time").alias("l")
        right = job.source("b", SCHEMA).dataframe(event_time="right_time").alias("r")
        within = F.expr("l.key = r.key AND right_time BETWEEN left_time AND left_time + INTERVAL 10 SECONDS")
        job.write(left.join(right, within).select("l.key", F.col("l.n").alias("left"), F.col("r.n").alias("right")), "out")
        """,
        'OPERATORS = {"read": None, "pairs": "join", "write": None}',
        sources={"a": 1, "b": 1},
    )
    tested.feed("a", _row("30:00", n=1), _row("30:30", n=2))
    tested.feed("b", _row("30:10", n=3), _row("30:30", n=4))
    with tested.running() as running:
        running.until_read({"a": [2], "b": [2]})
        # As old as the watermark, 12:30:20, is not late.
        tested.feed("a", _row("30:20", n=5))
        running.until_read({"a": [3], "b": [2]})
    assert tested.rows() == [{"key": "k", "left": left, "right": right} for left, right in ((1, 3), (2, 4), (5, 4))]


def test_duplicates_are_dropped_within_the_sources_out_of_orderness_and_their_keys_are_forgotten(job: Job) -> None:
    tested = job(
        'job.write(job.source("a", SCHEMA).df.dropDuplicatesWithinWatermark(["key"]), "out")',
        'OPERATORS = {"read": None, "once": "other", "write": None}',
    )
    tested.feed("a", _row("30:00", n=1), _row("30:05", n=2))
    with tested.running() as running:
        running.until_read({"a": [2]})
        for place, row in enumerate([_row("31:00", "other", n=3), _row("31:00", n=4)], start=3):
            tested.feed("a", row)
            running.until_read({"a": [place]})
    assert sorted(row["n"] for row in tested.rows()) == [1, 3, 4]


def test_transform_with_state_runs_with_timers_of_event_time(job: Job) -> None:
    tested = job(
        """
        from pyspark.sql.streaming import StatefulProcessor

        class Last(StatefulProcessor):
            def init(self, handle):
                self.handle, self.last = handle, handle.getValueState("last", "n INT")

            def handleInputRows(self, key, rows, timerValues):
                frames = list(rows)
                n, time = max(pair for frame in frames for pair in zip(frame["n"], frame["event_time"]))
                self.last.update((int(n),))
                self.handle.registerTimer(int(time.timestamp() * 1000) + 5_000)
                return iter(())

            def handleExpiredTimer(self, key, timerValues, expiredTimerInfo):
                yield pd.DataFrame({"key": [key[0]], "n": [self.last.get()[0]]})

            def close(self):
                pass

        keyed = job.source("a", SCHEMA).df.groupBy("key")
        job.write(keyed.transformWithStateInPandas(Last(), "key STRING, n INT", "Append", "EventTime"), "out")
        """,
        'OPERATORS = {"read": None, "last": "other", "write": None}',
    )
    ran = _ran(tested, _row("30:00", n=7), _row("30:30", "other"), then=_row("31:00", "other"))
    assert ran == [{"key": "k", "n": 7}, {"key": "other", "n": 1}]


def test_a_frame_returns_to_a_stream_for_the_blocks(job: Job) -> None:
    tested = job("""
        rows = job.stream(job.source("a", SCHEMA).df.where("n > 0"))
        job.write(aggregate(rows, tumbling("10s"), keys=["key"], n=F.sum("n")).select(key="key", n="n"), {"out": F.col("n") > 1})
    """)
    assert _ran(tested, _row("30:00"), _row("30:01"), _row("30:02", "one"), _row("30:03", n=-5), then=_row("30:40")) == [
        {"key": "k", "n": 2}
    ]


def test_each_sink_gets_what_its_function_makes_of_the_micro_batch(job: Job) -> None:
    tested = job(
        """
        def totals(rows):
            return rows.groupBy("key").agg(F.sum("n").alias("n"))

        job.write(job.source("a", SCHEMA), {"out": totals, "large": F.col("n") > 2, "all": None})
        """,
    )
    files = {"path": "unset", "prefix": "part-", "roll": {"interval": "1ms"}}
    tested.edit(
        lambda spec: spec["sinks"].update({name: {"files": {**files, "path": f"{tested.name}-{name}"}} for name in ("large", "all")})
    )
    ran = _ran(tested, _row("30:00", n=1), _row("30:01", n=2), _row("30:02", "x", n=3), b"broken")
    assert ran == [{"key": "k", "n": 3}, {"key": "x", "n": 3}]
    assert tested.rows_of("large") == [_row("30:02", "x", n=3)]
    assert tested.rows_of("all") == [_row("30:00", n=1), _row("30:01", n=2), _row("30:02", "x", n=3)]


@pytest.mark.parametrize(
    ("build", "given", "need"),
    [
        ('job.source("a", SCHEMA); job.write(job.session.range(3), "out")', "a static DataFrame", "rows of the job's sources"),
        ('job.source("a", SCHEMA); job.write([1], "out")', "builtins.list", "a stream or a Spark DataFrame"),
        (
            'job.write(job.session.newSession().createDataFrame([(1,)], "n INT"), "out"); job.source("a", SCHEMA)',
            "a DataFrame of another session",
            "a DataFrame of the job's session",
        ),
        (
            'job.source("a", SCHEMA); job.write(job.session.readStream.format("rate").load(), "out")',
            "StreamingRelation",
            "rows of the spec's sources alone",
        ),
        (
            'job.write(job.source("a", SCHEMA).df.withColumn("event_time", F.lit(7)), "out")',
            "event_time INT",
            "the event time, a TIMESTAMP",
        ),
        ('job.write(job.source("a", SCHEMA).df.withColumn("_time", F.now()), "out")', "a column _time", "no column _time, which is"),
        (
            'job.write(job.source("a", SCHEMA).df, "out", event_time="none")',
            'event_time="none"',
            "one of the columns: key, at, n",
        ),
        ('d = job.source("a", SCHEMA).df\njob.write(d.union(d), "out")', "a, 2 times", "each source once"),
        ('d = job.source("a", SCHEMA).df\njob.write(d.crossJoin(d), "out")', "2 columns key", "columns with names of their own"),
        (
            'job.write(job.source("a", SCHEMA).df.withWatermark("event_time", "1 minute"), "out")',
            'withWatermark("event_time", ...)',
            "the watermark of the spec alone",
        ),
        (
            'job.write(job.source("a", SCHEMA).df.groupBy("key").agg(F.count_distinct("n")), "out")',
            "an aggregate of DISTINCT values",
            "aggregates that Structured Streaming supports",
        ),
        ('job.write(job.source("a", SCHEMA).df, "out", output_mode="complete")', 'output_mode="complete"', "append or update"),
        ('job.write(job.source("a", SCHEMA), "out", output_mode="append")', 'output_mode="append"', "neither for a stream"),
        ('job.write(job.source("a", SCHEMA), {"out": lambda rows: 7})', "builtins.int", "a stream or a Spark DataFrame"),
        (
            'd = job.source("a", SCHEMA).df\njob.write(d, {"out": lambda rows: d})',
            "a streaming DataFrame",
            "rows of the micro-batch",
        ),
        ('job.write(job.source("a", SCHEMA).df.orderBy("n"), "out")', "Sorting is not supported", "what Structured Streaming supports"),
    ],
)
def test_what_a_query_cannot_be_is_refused_with_what_was_given(job: Job, build: str, given: str, need: str) -> None:
    error = _refused(job(build))
    assert error.code == "JOB-004"
    assert given in str(error.given)
    assert need in str(error.need)
    assert error.fix


def test_a_source_that_feeds_no_output_is_refused(job: Job) -> None:
    error = _refused(job('job.source("b", SCHEMA); job.write(job.source("a", SCHEMA).df, "out")', sources={"a": 1, "b": 1}))
    assert error.need == "an output that is fed by each source; without rows of: b"


def test_a_function_of_a_sink_that_fails_is_reported_before_the_query_starts(job: Job) -> None:
    error = _refused(job('job.write(job.source("a", SCHEMA), {"out": lambda rows: rows.select("nothing")})'), AppFailed)
    assert (error.code, error.path) == ("JOB-003", 'job.write(..., "out")')
    assert "nothing" in str(error.given)


def test_a_function_that_a_replay_would_not_repeat_is_refused_before_an_exactly_once_sink(job: Job) -> None:
    error = _refused(job('job.write(job.source("a", SCHEMA), {"out": lambda rows: rows.withColumn("r", F.rand())})'), NotRepeatable)
    assert "rand" in str(error.given)


@pytest.mark.parametrize(
    ("operators", "given", "fix"),
    [
        ("", "none", 'OPERATORS = {"read": None, "aggregate-1": "other", "write": None}'),
        ('OPERATORS = {"in": None, "x": "join", "to": None}', "1 x join", 'OPERATORS = {"in": None, "aggregate-1": "other", "to": None}'),
    ],
)
def test_state_that_is_not_declared_is_refused_with_the_right_declaration(job: Job, operators: str, given: str, fix: str) -> None:
    error = _refused(job('job.write(job.source("a", SCHEMA).df.groupBy("key").count(), "out")', operators), OperatorsDiffer)
    assert error.given == given
    assert error.need == "the operators that keep state in the query: 1 x other (Aggregate)"
    assert error.fix == f"declare {fix}"
