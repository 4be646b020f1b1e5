"""Side-output rows that several attempts, runs and drivers stage: each row is read once, by the driver that it belongs to."""

from __future__ import annotations

import uuid
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from penstock.jobs.errors import BucketUnreachable
from penstock.jobs.storage.checkpoint import Checkpoint
from penstock.jobs.stream.side_outputs import StagedRows, data_rows
from penstock.jobs.stream.streams import REASON, RECORD, RECORD_TYPE, TAG, TIME, Stream, Tag
from penstock.jobs.stream.task_errors import of_a_task
from tests.jobs.spark.running import CHECKPOINTS
from tests.jobs.spark.task_properties import local_properties

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

TOKEN, RUN, BATCH = 7, "run", 3
REASONS = ["row 0", "row 1", "row 2", "row 3"]


@pytest.fixture
def checkpoint(s3: S3Client) -> Checkpoint:
    return Checkpoint(f"s3a://{CHECKPOINTS}/staged-{uuid.uuid4().hex[:8]}/1", token=TOKEN)


def _stream(session: SparkSession) -> Stream:
    """Four malformed rows in two partitions."""
    frame = session.range(0, 4, 1, 2).select(
        F.when(F.col("id") >= 0, Tag.QUARANTINED).otherwise(Tag.DATA).alias(TAG),
        F.concat(F.lit("row "), F.col("id")).alias(REASON),
        F.lit(None).cast("timestamp").alias(TIME),
        F.lit(None).cast(RECORD_TYPE).alias(RECORD),
    )
    return Stream(frame, timed=False)


def _run(stream: Stream, uri: str, *, token: int = TOKEN, run: str = RUN, batch: int = BATCH) -> None:
    """Runs every task of a stream in the context of a micro-batch."""
    of_the_driver = {"penstock.checkpoint": uri, "penstock.fencingToken": str(token)}
    of_spark = {"streaming.sql.batchId": str(batch), "spark.jobGroup.id": run}
    with local_properties(stream.frame.sparkSession, of_the_driver | of_spark):
        assert stream.frame.collect() == []


def _reasons(session: SparkSession, staged: StagedRows) -> list[str]:
    rows = staged.rows(session)
    return [] if rows is None else sorted(row[REASON] for row in rows.collect())


def test_rows_that_two_attempts_of_a_task_have_staged_are_read_once(session: SparkSession, checkpoint: Checkpoint) -> None:
    data = data_rows(_stream(session))
    _run(data, checkpoint.uri)
    _run(data, checkpoint.uri)
    assert len(checkpoint.names("aside/")) == 4, "two tasks, two attempts each"
    staged = StagedRows(checkpoint, RUN, BATCH)
    rows = staged.rows(session)
    assert rows is not None
    # A third one while the driver reads, as when a cached block is lost.
    _run(data, checkpoint.uri)
    assert sorted(row[REASON] for row in rows.collect()) == REASONS
    staged.delete()
    assert len(checkpoint.names("aside/")) == 2, "what came after the listing"
    StagedRows(checkpoint, RUN, BATCH + 1).delete()
    assert checkpoint.names("aside/") == []


def test_rows_of_two_operators_are_all_read(session: SparkSession, checkpoint: Checkpoint) -> None:
    for _ in range(2):
        _run(data_rows(_stream(session)), checkpoint.uri)
    assert _reasons(session, StagedRows(checkpoint, RUN, BATCH)) == sorted(REASONS * 2)


def test_rows_of_another_driver_run_or_micro_batch_are_not_read(session: SparkSession, checkpoint: Checkpoint) -> None:
    data = data_rows(_stream(session))
    _run(data, checkpoint.uri, token=TOKEN - 1)
    _run(data, checkpoint.uri, token=TOKEN + 1)
    _run(data, checkpoint.uri, run="an earlier run")
    _run(data, checkpoint.uri, batch=BATCH - 1)
    staged = StagedRows(checkpoint, RUN, BATCH)
    assert staged.rows(session) is None
    staged.delete()
    left = {name.split("/")[1] for name in checkpoint.names("aside/")}
    assert left == {str(TOKEN + 1)}, "a driver deletes nothing of the one that has replaced it"


def test_objects_of_a_version_without_tokens_are_deleted(s3: S3Client, session: SparkSession, checkpoint: Checkpoint) -> None:
    data_rows(_stream(session))
    key = f"{checkpoint.uri.removeprefix(f's3a://{CHECKPOINTS}/')}/penstock/aside/{BATCH}/000-00001.parquet"
    s3.put_object(Bucket=CHECKPOINTS, Key=key, Body=b"")
    staged = StagedRows(checkpoint, RUN, BATCH)
    assert staged.rows(session) is None
    staged.delete()
    assert checkpoint.names("aside/") == []


def test_a_micro_batch_costs_one_listing_and_one_deletion(session: SparkSession, checkpoint: Checkpoint) -> None:
    _run(data_rows(_stream(session)), checkpoint.uri)
    calls: Counter[str] = Counter()
    checkpoint._s3.meta.events.register("before-call.s3.*", lambda model, **_: calls.update([model.name]))
    staged = StagedRows(checkpoint, RUN, BATCH)
    assert _reasons(session, staged) == REASONS
    staged.delete()
    assert calls == {"ListObjectsV2": 1, "DeleteObjects": 1}


def test_a_bucket_that_does_not_exist_is_reported(session: SparkSession) -> None:
    with pytest.raises(Exception, match="JOB-009") as raised:
        _run(data_rows(_stream(session)), "s3a://no-such-bucket/job/1")
    assert isinstance(of_a_task(raised.value), BucketUnreachable)
