"""The journal of calls, on the emulated S3: the first answer to a key is kept, whichever task requests it."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from penstock.jobs.blocks.calls import journal
from penstock.jobs.blocks.calls.journal import Journal
from penstock.jobs.storage.checkpoint import Checkpoint
from penstock.jobs.storage.errors import BucketUnreachable
from penstock.jobs.stream.task_context import TaskPlace
from penstock.jobs.stream.task_errors import TaskFailed, in_a_task, of_a_task
from tests.jobs.spark.running import CHECKPOINTS

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

SCHEMA = pa.schema([("key", pa.string()), ("answer", pa.int64())])


@pytest.fixture
def checkpoint(s3: S3Client) -> str:
    return f"s3a://{CHECKPOINTS}/journal-{uuid.uuid4().hex[:8]}/1"


def _journal(checkpoint: str, *, partition: int = 0, batch: int = 7, schema: pa.Schema = SCHEMA) -> Journal:
    return Journal(TaskPlace(checkpoint, 0, "run", batch, partition, 0), "credit", schema)


def _put(of: Journal, **answers: int) -> dict[str, int]:
    return {key: entry["answer"] for key, entry in of.append({key: {"answer": answer} for key, answer in answers.items()}).items()}


def _found(of: Journal, keys: str) -> dict[str, int]:
    return {key: entry["answer"] for key, entry in of.find(keys).items()}


def test_a_task_that_runs_again_finds_its_answers(checkpoint: str) -> None:
    first = _journal(checkpoint)
    assert _found(first, "ab") == {}
    assert _put(first, a=1, b=2) == {"a": 1, "b": 2}
    assert _put(first, c=3, a=9) == {"c": 3, "a": 1}
    again = _journal(checkpoint)
    assert _found(again, "abcd") == {"a": 1, "b": 2, "c": 3}
    assert _put(again, d=4) == {"d": 4}
    assert _found(_journal(checkpoint), "abcd") == {"a": 1, "b": 2, "c": 3, "d": 4}
    assert _found(_journal(checkpoint, batch=8), "abcd") == {}


def test_of_two_who_run_the_same_task_at_once_the_first_answer_holds_for_both(checkpoint: str) -> None:
    one, other = _journal(checkpoint), _journal(checkpoint)
    assert _found(one, "abc") == _found(other, "abc") == {}
    assert _put(one, a=1, b=1) == {"a": 1, "b": 1}
    assert _put(other, b=2, c=2) == {"b": 1, "c": 2}
    assert _put(one, c=1, d=1) == {"c": 2, "d": 1}
    assert _found(_journal(checkpoint), "abcd") == {"a": 1, "b": 1, "c": 2, "d": 1}


def test_rows_that_come_to_another_task_at_the_second_try_have_their_answers(checkpoint: str) -> None:
    _put(_journal(checkpoint, partition=0), a=1, b=2)
    _put(_journal(checkpoint, partition=1), c=3, a=5)
    assert _found(_journal(checkpoint, partition=2), "abc") == {"a": 1, "b": 2, "c": 3}
    # A task's own log comes first.
    assert _found(_journal(checkpoint, partition=1), "ac") == {"a": 5, "c": 3}


def test_answers_of_another_form_are_passed_over(checkpoint: str) -> None:
    _put(_journal(checkpoint), a=1)
    after = _journal(checkpoint, schema=pa.schema([("key", pa.string()), ("answer", pa.string())]))
    assert after.find("a") == {}
    assert after.append({"a": {"answer": "one"}}) == {"a": {"key": "a", "answer": "one"}}


def test_an_answer_is_the_same_to_who_puts_it_down_and_to_who_finds_it(checkpoint: str) -> None:
    schema = pa.schema([("key", pa.string()), ("answer", pa.float32())])
    put = _journal(checkpoint, schema=schema).append({"a": {"answer": 0.1}})
    assert put == _journal(checkpoint, schema=schema).find("a")
    assert put["a"]["answer"] != 0.1


def test_entries_of_committed_micro_batches_are_deleted(checkpoint: str) -> None:
    journal.declare("credit")
    for batch in (5, 6, 7):
        _put(_journal(checkpoint, batch=batch), a=batch)
    journal.clear(Checkpoint(checkpoint), keep=7)
    assert [_found(_journal(checkpoint, batch=batch), "a") for batch in (5, 6, 7)] == [{}, {}, {"a": 7}]


def test_a_driver_considered_dead_deletes_no_entries_of_a_later_micro_batch(checkpoint: str) -> None:
    journal.declare("credit")
    for batch in (6, 7, 10):
        _put(_journal(checkpoint, batch=batch), a=batch)
    # It has written micro-batch 7, while its successor runs micro-batch 10.
    journal.clear(Checkpoint(checkpoint), keep=7)
    assert [_found(_journal(checkpoint, batch=batch), "a") for batch in (6, 7, 10)] == [{}, {"a": 7}, {"a": 10}]


def test_what_a_task_considered_dead_records_after_its_micro_batch_is_deleted_with_the_next_one(s3: S3Client, checkpoint: str) -> None:
    journal.declare("credit")
    dead, live = _journal(checkpoint), _journal(checkpoint)
    assert _put(dead, a=1) == _put(live, a=2) == {"a": 1}
    journal.clear(Checkpoint(checkpoint), keep=8)
    # It keeps the answers that it knows, and asks again for others.
    assert _put(dead, a=3, b=3) == {"a": 1, "b": 3}
    assert _put(_journal(checkpoint, batch=8), a=8, b=8) == {"a": 8, "b": 8}
    journal.clear(Checkpoint(checkpoint), keep=9)
    prefix = checkpoint.removeprefix(f"s3a://{CHECKPOINTS}/")
    assert "Contents" not in s3.list_objects_v2(Bucket=CHECKPOINTS, Prefix=prefix)


def test_a_missing_bucket_is_reported_from_the_text_of_a_failed_task(s3: S3Client) -> None:
    with pytest.raises(TaskFailed) as raised, in_a_task():
        _journal("s3a://no-such-bucket/job/1").find("a")
    spark_says = RuntimeError(
        f"Traceback (most recent call last):\n  File ...\njobs.async_io.task_errors.TaskFailed: {raised.value}\n\tat x"
    )
    error = of_a_task(spark_says)
    assert isinstance(error, BucketUnreachable)
    assert "no-such-bucket" in error.given or "NoSuchBucket" in error.given
    assert of_a_task(RuntimeError("something else")) is None
