"""What a replay would not repeat is refused before an exactly-once sink."""

from __future__ import annotations

import uuid

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.determinism import refuse_unrepeatable, unrepeatable
from jobs.errors import NotRepeatable


def test_what_is_computed_anew_each_time_or_depends_on_the_order_of_rows_is_found_by_name(session: SparkSession) -> None:
    rows = session.createDataFrame([("a", 1)], "k string, n int")
    random = F.udf(lambda _: uuid.uuid4().hex).asNondeterministic()
    found: dict[str, DataFrame] = {
        "rand(5)": rows.where("n > 0").withColumn("r", F.expr("rand(5)")).select("k", (F.col("r") + 1).alias("r")),
        "uuid()": rows.select(F.expr("concat(k, uuid())")),
        "<lambda>(n)": rows.select(random("n")),
        "monotonically_increasing_id()": rows.withColumn("id", F.monotonically_increasing_id()),
        "first(outer.n)": rows.alias("outer").groupBy("k").agg(F.first("outer.n")),
        "collect_list(outer.n)": rows.alias("outer").groupBy("k").agg(F.collect_list("outer.n")),
        "a sample": rows.sample(0.5),
    }
    assert {name: unrepeatable(frame) for name, frame in found.items()} == {name: [name] for name in found}
    with pytest.raises(NotRepeatable) as raised:
        refuse_unrepeatable(found["uuid()"], ["out", "topic"])
    assert (raised.value.code, raised.value.given) == ("JOB-062", "uuid()")
    assert raised.value.need == "rows that a replay repeats, for exactly-once at out, topic"
    # A sink that is at-least-once anyway takes them.
    refuse_unrepeatable(found["uuid()"], [])


def test_what_a_replay_repeats_passes(session: SparkSession) -> None:
    rows = session.createDataFrame([("a", 1)], "k string, n int")
    passing = [
        rows.withColumn("now", F.current_timestamp()).repartition(3),
        rows.select(F.udf(lambda n: n + 1, "int")("n")),
        rows.mapInArrow(lambda batches: batches, rows.schema),
        rows.groupBy("k").agg(F.sum("n"), F.max_by("n", "k"), F.array_sort(F.collect_list("n")), F.size(F.collect_set("n"))),
    ]
    assert [unrepeatable(frame) for frame in passing] == [[]] * len(passing)
