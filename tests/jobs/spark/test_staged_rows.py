"""Side-output rows that several attempts and runs of a task take out of the stream: each is written once."""

from __future__ import annotations

import threading
import uuid
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.jobs.storage.checkpoint import Checkpoint
from penstock.jobs.storage.errors import BucketUnreachable
from penstock.jobs.stream import leaving
from penstock.jobs.stream.analyzed_plan import functions_of
from penstock.jobs.stream.leaving import Counting, Passed, TagCount, kept
from penstock.jobs.stream.side_outputs import REASON, RECORD, SideRows
from penstock.jobs.stream.streams import Tag, record
from penstock.jobs.stream.task_errors import of_a_task
from tests.jobs.spark.running import CHECKPOINTS
from tests.jobs.spark.task_properties import local_properties

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

TOKEN, RUN, BATCH = 7, "run", 3
REASONS = ["row 0", "row 1", "row 2", "row 3"]
# Above what a task sends to the driver with its result.
MANY = "x" * 70_000


@pytest.fixture
def checkpoint(s3: S3Client) -> Checkpoint:
    return Checkpoint(f"s3a://{CHECKPOINTS}/staged-{uuid.uuid4().hex[:8]}/1", token=TOKEN)


@pytest.fixture(autouse=True)
def _nothing_left(session: SparkSession) -> Iterator[None]:
    leaving.forget(session)
    yield
    leaving.forget(session)


def _leaving(session: SparkSession, value: str = "{}") -> DataFrame:
    """Four malformed rows in two partitions, and as many that are data."""
    rows, reason = session.range(0, 8, 1, 2), F.concat(F.lit("row "), (F.col("id") / 2).cast("int"))
    made = record(F.lit("made"), F.lit(value).cast("binary"))
    return kept(rows, F.col("id") % 2 == 1, Tag.QUARANTINED, reason, made)


def _run(frame: DataFrame, uri: str, *, token: int = TOKEN, run: str = RUN, batch: int = BATCH, tags: str = "quarantined,late") -> None:
    """Runs every task of a frame in the context of a micro-batch."""
    of_the_driver = {"penstock.checkpoint": uri, "penstock.fencingToken": str(token), "penstock.sideOutputs": tags}
    of_spark = {"streaming.sql.batchId": str(batch), "spark.jobGroup.id": run}
    with local_properties(frame.sparkSession, of_the_driver | of_spark):
        assert frame.count() == 4


def _reasons(session: SparkSession, side_rows: SideRows) -> list[str]:
    rows = side_rows.rows(session, side_rows.passed(session))
    return [] if rows is None else sorted(row[REASON] for row in rows.collect())


@pytest.mark.parametrize("value", ["{}", MANY], ids=["few", "many"])
def test_rows_that_two_attempts_of_a_task_have_taken_out_are_read_once(session: SparkSession, checkpoint: Checkpoint, value: str) -> None:
    frame, side_rows = _leaving(session, value), SideRows(checkpoint, RUN, BATCH)
    _run(frame, checkpoint.uri)
    _run(frame, checkpoint.uri)
    passed = side_rows.passed(session)
    assert passed.by_tag() == {Tag.QUARANTINED: TagCount(4, 4, kept=True)}
    rows = side_rows.rows(session, passed)
    assert rows is not None
    # A third one while the driver reads, as when a cached block is lost.
    _run(frame, checkpoint.uri)
    assert sorted((row[REASON], bytes(row[RECORD]["value"]).decode()) for row in rows.collect()) == [(one, value) for one in REASONS]
    assert len(checkpoint.names("aside/")) == (6 if value == MANY else 0), "one object of each attempt of two tasks"
    side_rows.delete()
    assert checkpoint.names("aside/") == []


def test_rows_of_two_operators_are_all_read(session: SparkSession, checkpoint: Checkpoint) -> None:
    for _ in range(2):
        _run(_leaving(session), checkpoint.uri)
    assert _reasons(session, SideRows(checkpoint, RUN, BATCH)) == sorted(REASONS * 2)


def test_rows_of_another_run_or_micro_batch_are_not_read(session: SparkSession, checkpoint: Checkpoint) -> None:
    frame = _leaving(session, MANY)
    _run(frame, checkpoint.uri, run="an earlier run")
    _run(frame, checkpoint.uri, batch=BATCH - 1)
    side_rows = SideRows(checkpoint, RUN, BATCH)
    assert side_rows.passed(session) == Passed()
    assert _reasons(session, side_rows) == []


def test_an_attempt_that_was_not_read_to_its_end_replaces_none_that_was(session: SparkSession, checkpoint: Checkpoint) -> None:
    frame, side_rows = _leaving(session), SideRows(checkpoint, RUN, BATCH)
    _run(frame, checkpoint.uri)
    of_the_driver = {"penstock.checkpoint": checkpoint.uri, "penstock.fencingToken": "7", "penstock.sideOutputs": "quarantined"}
    with local_properties(session, of_the_driver | {"streaming.sql.batchId": str(BATCH), "spark.jobGroup.id": RUN}):
        assert len(frame.take(1)) == 1
    assert _reasons(session, side_rows) == REASONS


def test_rows_whose_tag_has_no_side_output_are_only_counted(session: SparkSession, checkpoint: Checkpoint) -> None:
    _run(_leaving(session, MANY), checkpoint.uri, tags="late")
    side_rows = SideRows(checkpoint, RUN, BATCH)
    assert side_rows.passed(session).by_tag() == {Tag.QUARANTINED: TagCount(4, 4)}
    assert _reasons(session, side_rows) == [] == checkpoint.names("aside/")


def test_a_driver_deletes_nothing_of_the_one_that_has_replaced_it(s3: S3Client, session: SparkSession, checkpoint: Checkpoint) -> None:
    for token in (TOKEN - 1, TOKEN, TOKEN + 1):
        _run(_leaving(session, MANY), checkpoint.uri, token=token)
    key = f"{checkpoint.uri.removeprefix(f's3a://{CHECKPOINTS}/')}/penstock/aside/{BATCH}/000-00001.parquet"
    s3.put_object(Bucket=CHECKPOINTS, Key=key, Body=b"")
    SideRows(checkpoint, RUN, BATCH).delete()
    left = {name.split("/")[1] for name in checkpoint.names("aside/")}
    assert left == {str(TOKEN + 1)}, "names without a token are those of a version that did not have one"


def test_rows_that_leave_cost_no_request_unless_they_are_many(session: SparkSession, checkpoint: Checkpoint) -> None:
    _run(_leaving(session), checkpoint.uri)
    calls: Counter[str] = Counter()
    checkpoint._s3.meta.events.register("before-call.s3.*", lambda model, **_: calls.update([model.name]))
    assert _reasons(session, SideRows(checkpoint, RUN, BATCH)) == REASONS
    assert calls == {} and checkpoint.names("aside/") == []


def test_a_bucket_that_does_not_exist_is_reported(session: SparkSession) -> None:
    with pytest.raises(Exception, match="JOB-009") as raised:
        _run(_leaving(session, MANY), "s3a://no-such-bucket/job/1")
    assert isinstance(of_a_task(raised.value), BucketUnreachable)


def test_what_a_micro_batch_has_counted_is_kept_until_no_other_runs(session: SparkSession, checkpoint: Checkpoint) -> None:
    counting, frame, four = Counting(), _leaving(session), {Tag.QUARANTINED: TagCount(4, 4, kept=True)}
    with counting.micro_batch(session):
        _run(frame, checkpoint.uri, run="one")
        with counting.micro_batch(session):
            _run(frame, checkpoint.uri, run="other")
            assert Passed.of(session, "other", BATCH).by_tag() == four
        assert Passed.of(session, "one", BATCH).by_tag() == four
    assert [Passed.of(session, run, BATCH).by_tag() for run in ("one", "other")] == [{}, {}]


def test_a_micro_batch_waits_for_those_that_run_once_many_have_not_been_forgotten(session: SparkSession) -> None:
    counting, happened = Counting(most=2), []

    def third() -> None:
        with counting.micro_batch(session):
            happened.append("the third one begins")

    waiting = threading.Thread(target=third)
    with counting.micro_batch(session):
        for _ in range(2):
            with counting.micro_batch(session):
                pass
        waiting.start()
        happened.append("the first one ends")
    waiting.join()
    assert happened == ["the first one ends", "the third one begins"]


def test_rows_that_another_query_writes_are_told_apart_by_their_operator(session: SparkSession, checkpoint: Checkpoint) -> None:
    four = _leaving(session)
    (others,) = {number for function in functions_of(four) if (number := leaving.operator_of(function)) is not None}
    own = kept(four, F.col("id") % 4 == 1, Tag.QUARANTINED, F.lit("of its own"), record(F.lit("made"), F.lit("{}").cast("binary")))
    of_the_driver = {"penstock.checkpoint": checkpoint.uri, "penstock.fencingToken": str(TOKEN), "penstock.sideOutputs": "quarantined"}
    with local_properties(session, of_the_driver | {"streaming.sql.batchId": str(BATCH), "spark.jobGroup.id": RUN}):
        assert own.count() == 2
    side_rows = SideRows(checkpoint, RUN, BATCH, frozenset({others}))
    passed = side_rows.passed(session)
    assert passed.by_tag() == {Tag.QUARANTINED: TagCount(2, 2, kept=True)}
    assert passed.tagged("", Tag.QUARANTINED) == 6
    assert _reasons(session, side_rows) == ["of its own"] * 2
