"""Expressions that a replay would not repeat are rejected for an exactly-once sink."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pandas as pd
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import pandas_udf
from pyspark.sql.udtf import UserDefinedTableFunction

from penstock.jobs.driver.determinism import refuse_unrepeatable, refuse_unrepeatable_state, unrepeatable
from penstock.jobs.driver.errors import NotRepeatable, StateNotRepeatable
from penstock.jobs.driver.micro_batch import MicroBatches, Route
from penstock.jobs.errors import BadDeclaration
from penstock.jobs.sinks.sink import Batch
from penstock.jobs.stream.analyzed_plan import runs_python
from penstock.jobs.stream.selections import routed
from penstock.sizing.errors import PenstockError
from tests.jobs.spark.running import Surroundings
from tests.jobs.spark.task_properties import ALL, local_properties


def test_what_is_computed_anew_each_time_or_depends_on_the_order_of_rows_is_found_by_name(session: SparkSession) -> None:
    rows = session.createDataFrame([("a", 1)], "k string, n int")
    random = F.udf(lambda _: uuid.uuid4().hex).asNondeterministic()
    frames: dict[str, DataFrame] = {
        "rand(5)": rows.where("n > 0").withColumn("r", F.expr("rand(5)")).select("k", (F.col("r") + 1).alias("r")),
        "uuid()": rows.select(F.expr("concat(k, uuid())")),
        "<lambda>(n)": rows.select(random("n")),
        "monotonically_increasing_id()": rows.withColumn("id", F.monotonically_increasing_id()),
        "first(outer.n)": rows.alias("outer").groupBy("k").agg(F.first("outer.n")),
        "collect_list(outer.n)": rows.alias("outer").groupBy("k").agg(F.collect_list("outer.n")),
        "a sample": rows.sample(0.5),
    }
    assert {name: unrepeatable(frame) for name, frame in frames.items()} == {name: [name] for name in frames}
    with pytest.raises(NotRepeatable) as raised:
        refuse_unrepeatable(frames["uuid()"], ["out", "topic"])
    assert (raised.value.code, raised.value.given) == ("JOB-062", "uuid()")
    assert raised.value.need == "deterministic rows, for exactly-once delivery to out, topic"
    # An at-least-once sink accepts them.
    refuse_unrepeatable(frames["uuid()"], [])


def test_what_a_replay_repeats_passes(session: SparkSession) -> None:
    rows = session.createDataFrame([("a", 1)], "k string, n int")
    passing = [
        rows.withColumn("now", F.current_timestamp()).repartition(3),
        rows.select(F.udf(lambda n: n + 1, "int")("n")),
        rows.mapInArrow(lambda batches: batches, rows.schema),
        rows.groupBy("k").agg(F.sum("n"), F.max_by("n", "k"), F.array_sort(F.collect_list("n")), F.size(F.collect_set("n"))),
    ]
    assert [unrepeatable(frame) for frame in passing] == [[]] * len(passing)


class _Seen:
    """A sink that reads its rows twice, such as one that writes and verifies them."""

    def __init__(self) -> None:
        self.found: list[list[int]] = []
        self.columns: list[str] = []

    def write(self, rows: DataFrame, batch: Batch) -> None:
        looks = [sorted(row["n"] for row in rows.collect()) for _ in range(2)]
        self.found = [*looks, list(range(batch.rows))]
        self.columns = rows.columns


def test_which_sinks_a_row_goes_to_is_decided_once(session: SparkSession) -> None:
    rows = session.range(100).select(F.col("id").alias("n"))
    routes = {"by-chance": "rand() < 0.5", "none": "cast(null as boolean)", "all": None}
    sinks = {name: _Seen() for name in routes}
    marked = routed(rows, routes).persist()
    with local_properties(session, ALL):
        batches: Any = SimpleNamespace(
            engine=SimpleNamespace(batch_time_ms=lambda: 0),
            apart=False,
            routes=[Route(name, cast(Any, sinks[name]), chosen=condition is not None) for name, condition in routes.items()],
        )
        MicroBatches._write(batches, marked, 100, 7)
    marked.unpersist()
    first, again, counted = sinks["by-chance"].found
    assert first == again
    assert 0 < len(first) == len(counted) < 100
    assert sinks["none"].found == [[], [], []]
    assert [len(numbers) for numbers in sinks["all"].found] == [100, 100, 100]
    assert {tuple(sink.columns) for sink in sinks.values()} == {("n",)}
    assert unrepeatable(marked) == ["rand()"]
    assert unrepeatable(routed(rows, {"fresh": "now() > timestamp '2025-04-05'", "all": None})) == []


def test_steps_and_functions_in_python_are_found_wherever_they_are(session: SparkSession) -> None:
    rows = session.range(3)
    twice = F.udf(lambda n: 2 * n, "long")
    assert [runs_python(frame) for frame in (rows, rows.where("id > 1").select(F.col("id") + 1))] == [False, False]
    mean: Any = cast(Any, pandas_udf)(_mean, "double")
    session.udtf.register("twice_each", cast(UserDefinedTableFunction, F.udtf(_TwiceEach, returnType="n: long")))
    in_python = {
        "a function": rows.select(twice("id")),
        "a condition": rows.where(F.coalesce(twice("id"), F.lit(0)) > 1).select("id"),
        "a step": rows.mapInArrow(lambda batches: batches, "id long").select("id"),
        "an aggregate": rows.groupBy("id").agg(mean("id")),
        "a table function": session.sql("SELECT id, n FROM range(3), LATERAL twice_each(id)"),
    }
    assert {name for name, frame in in_python.items() if runs_python(frame)} == set(in_python)


def _mean(values: pd.Series) -> float:
    return float(values.mean())


class _TwiceEach:
    def eval(self, number: int) -> Iterator[tuple[int]]:
        yield (2 * number,)


def _exactly_once(spec: dict[str, Any], sink: str, parameters: dict[str, str]) -> None:
    spec["parameters"] = parameters
    spec["sinks"]["out"] = {"kafka": {**spec["sinks"]["late"]["kafka"], "key": ["key"]}}
    spec["sinks"][sink]["kafka"]["guarantee"] = "exactly-once"


REFUSED: dict[str, tuple[str, dict[str, str], type[PenstockError], str, str]] = {
    "rows of a side output": ("errors", {"id": "uuid()"}, NotRepeatable, "build", "exactly-once delivery to errors"),
    "a route": ("out", {"condition": "rand(3) < 0.5"}, NotRepeatable, "build", "exactly-once delivery to out"),
    "a route's column": ("out", {"condition": "naem = 'x'"}, BadDeclaration, 'job.write(..., "out")', "`naem`"),
    "a route that is no condition": ("out", {"condition": "key"}, BadDeclaration, 'job.write(..., "out")', "BOOLEAN"),
    "a tag without a side output": ("out", {"tag": "alrets"}, BadDeclaration, "stream.divert", 'its rows with the tag "alrets"'),
}


@pytest.mark.parametrize(("sink", "parameters", "kind", "path", "need"), REFUSED.values(), ids=list(REFUSED))
def test_before_the_query_starts_it_refuses(
    surroundings: Surroundings, sink: str, parameters: dict[str, str], kind: type[PenstockError], path: str, need: str
) -> None:
    job = surroundings.job("tests.jobs.spark.apps.chosen", sources={"a": 1})
    job.edit(lambda spec: _exactly_once(spec, sink, parameters))
    with pytest.raises(PenstockError) as raised, job.running():
        pytest.fail("the query was started")
    assert isinstance(raised.value, kind)
    assert raised.value.path == path
    assert need in raised.value.need


def _arriving(session: SparkSession) -> DataFrame:
    return session.readStream.format("rate").load().withWatermark("timestamp", "1 minute").withColumn("k", F.expr("value % 2"))


def test_what_is_not_repeated_upstream_of_state_on_the_heap_is_rejected(session: SparkSession) -> None:
    arriving = _arriving(session)
    random = arriving.withColumn("r", F.expr("rand(5)"))
    other = arriving.select(F.col("k").alias("other"), F.col("timestamp").alias("at"))
    frames = {
        "an aggregate": random.groupBy("k").agg(F.max("r")),
        "deduplication": random.dropDuplicates(["r"]),
        "deduplication within the watermark": random.dropDuplicatesWithinWatermark(["r"]),
        "distinct rows": random.select("r").distinct(),
        "a join": random.join(other, F.expr("k = other and at between timestamp and timestamp + interval 1 minute")),
        "below a stateless operator": random.dropDuplicates(["k"]).where("k > 0"),
    }
    for name, frame in frames.items():
        with pytest.raises(StateNotRepeatable) as raised:
            refuse_unrepeatable_state(frame)
        assert (raised.value.code, raised.value.given) == ("JOB-085", "rand(5)"), name
        assert "state.backend: rocksdb" in raised.value.fix
    with pytest.raises(StateNotRepeatable, match="collect_list"):
        refuse_unrepeatable_state(arriving.groupBy("k").agg(F.collect_list("value")))


def test_what_is_not_repeated_and_does_not_reach_state_passes(session: SparkSession) -> None:
    arriving = _arriving(session)
    table = session.createDataFrame([(0,), (1,)], "k long").withColumn("r", F.expr("rand()")).groupBy("k").agg(F.first("r").alias("r"))
    passing = [
        arriving.groupBy("k").count(),
        arriving.withColumn("r", F.expr("rand()")),
        arriving.groupBy("k").count().withColumn("r", F.expr("rand()")),
        arriving.join(table, "k"),
    ]
    for frame in passing:
        refuse_unrepeatable_state(frame)
