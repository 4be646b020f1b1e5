"""Rows of a micro-batch that a sink's tasks have to compute again: executors kept them, and are gone."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.jobs.sinks.sink import Batch
from penstock.jobs.stream.event_time.engine import unordered
from tests.jobs.spark.running import CHECKPOINTS, Surroundings

KEYS = 20
_EXPECTED = {f"{kind}{number}": count for number in range(KEYS) for kind, count in (("k", 3), ("first-k", 1))}
_APART, _TOGETHER = Batch(0, KEYS, 0, few=True, apart=True), Batch(0, KEYS, 0, few=True)


def _counts(surroundings: Surroundings, written: Callable[[DataFrame], DataFrame]) -> dict[str, int]:
    """What the tasks of a sink get of a micro-batch of which no row was kept: counts by key, and each key once."""
    given = surroundings.folder / uuid.uuid4().hex
    given.mkdir()
    (given / "rows.json").write_text("".join(json.dumps({"key": f"k{number % KEYS}"}) + "\n" for number in range(3 * KEYS)))
    counts: dict[str, int] = {}
    rows = surroundings.session.readStream.schema("key STRING").json(str(given))
    first = rows.dropDuplicates(["key"]).select(F.concat(F.lit("first-"), "key").alias("key"), F.lit(1).cast("bigint").alias("n"))
    writer = (
        rows.groupBy("key")
        .agg(F.count("*").alias("n"))
        .union(first)
        .writeStream.outputMode("update")
        .option("checkpointLocation", f"s3a://{CHECKPOINTS}/{given.name}")
    )
    query = (
        writer.foreachBatch(lambda batch, _: counts.update(map(tuple, written(unordered(batch)).collect())))
        .trigger(availableNow=True)
        .start()
    )
    query.processAllAvailable()
    query.stop()
    return counts


@pytest.mark.parametrize(
    "written",
    [lambda rows: _APART.spread(rows, 1_000), lambda rows: _APART.gathered(rows, 1)],
    ids=["in as many tasks", "gathered by a shuffle"],
)
def test_rows_of_an_aggregation_and_of_another_operator_are_computed_again_a_partition_a_task(
    surroundings: Surroundings, written: Callable[[DataFrame], DataFrame]
) -> None:
    assert surroundings.session.conf.get("spark.sql.shuffle.partitions") != "1"
    assert _counts(surroundings, written) == _EXPECTED


def test_spark_can_not_compute_partitions_of_both_again_in_one_task(surroundings: Surroundings) -> None:
    """Why `Batch.apart` is there. Once Spark can, it may go."""
    with pytest.raises(StreamingQueryException, match="same stateStoreId"):
        _counts(surroundings, lambda rows: _TOGETHER.gathered(rows, 1))
