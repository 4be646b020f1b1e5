"""A task knows its micro-batch from the driver, and fails if it does not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.jobs.blocks.joins import table_join
from penstock.jobs.stream.errors import TaskWithoutContext
from penstock.jobs.stream.leaving import batch_time, current_watermark
from penstock.jobs.stream.streams import TIME, Stream
from penstock.jobs.stream.task_context import TaskPlace, set_batch_time, set_checkpoint, set_watermark
from penstock.jobs.stream.task_errors import in_a_task, of_a_task
from tests.jobs.spark.task_properties import ALL, OF_SPARK, OF_THE_DRIVER, local_properties

TIMES = ("penstock.watermark", "penstock.batchTime")


def _here(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    with in_a_task():
        for _ in batches:
            yield pa.RecordBatch.from_pylist([{"here": str(TaskPlace.here())}])


def _places(session: SparkSession) -> list[str]:
    return [row["here"] for row in session.range(2, numPartitions=1).mapInArrow(_here, "here string").collect()]


def _stream(session: SparkSession) -> Stream:
    return Stream(session.range(1).select(F.col("id").cast("int").alias("id"), F.lit(None).cast("timestamp").alias(TIME)), timed=False)


def _error(frame: DataFrame) -> TaskWithoutContext:
    # Whichever class Spark wraps it in: the driver recognizes it by its text.
    with pytest.raises(Exception, match="JOB-084") as raised:
        frame.collect()
    error = of_a_task(raised.value)
    assert isinstance(error, TaskWithoutContext)
    return error


def test_a_task_reads_what_the_driver_and_spark_have_set(session: SparkSession) -> None:
    with local_properties(session, OF_SPARK):
        set_checkpoint(session, "s3a://bucket/job/1", 7, [])
        (here,) = _places(session)
    assert here.startswith("TaskPlace(checkpoint='s3a://bucket/job/1', token=7, run='a-run', batch=12, partition=0, attempt=")


@pytest.mark.parametrize("missing", [name for name in ALL if name not in (*TIMES, "penstock.sideOutputs")])
def test_a_task_without_a_part_of_its_context_fails_and_names_it(session: SparkSession, missing: str) -> None:
    properties = {name: value for name, value in ALL.items() if name != missing}
    with local_properties(session, properties):
        error = _error(session.range(1).mapInArrow(_here, "here string"))
    assert missing in error.need


def test_a_task_without_a_watermark_fails_and_one_whose_job_has_none_yet_does_not(session: SparkSession) -> None:
    current, cleared = current_watermark(session)
    frame = session.range(1).select(current, cleared)
    with local_properties(session, OF_SPARK):
        assert "penstock.watermark" in _error(frame).need
        set_watermark(session, None)
        assert [tuple(row) for row in frame.collect()] == [(None, None)]
        set_watermark(session, 12, 7)
        assert [tuple(row) for row in frame.collect()] == [(12, 7)]


def test_a_task_without_the_micro_batchs_timestamp_fails(session: SparkSession) -> None:
    frame = session.range(1).select(batch_time(session))
    with local_properties(session, OF_SPARK):
        assert "penstock.batchTime" in _error(frame).need
        set_batch_time(session, 1743856200000)
        assert [tuple(row) for row in frame.collect()] == [(1743856200000,)]


@pytest.mark.parametrize("missing", [name for name in ALL if name not in TIMES])
def test_no_row_leaves_in_a_micro_batch_that_is_not_known(session: SparkSession, missing: str) -> None:
    with local_properties(session, {name: value for name, value in ALL.items() if name != missing}):
        assert missing in _error(_stream(session).filter("id > 0").frame).need


def test_a_table_is_not_recorded_for_a_micro_batch_that_is_not_known(session: SparkSession) -> None:
    joined = table_join(_stream(session), "countries", lambda: [{"id": 1, "name": "one"}], "id INT, name STRING", on="id")
    with local_properties(session, OF_THE_DRIVER):
        assert "streaming.sql.batchId" in _error(joined.frame).need


def test_the_driver_cannot_be_taken_for_a_task() -> None:
    with pytest.raises(TaskWithoutContext, match="a Spark task"):
        TaskPlace.here()
