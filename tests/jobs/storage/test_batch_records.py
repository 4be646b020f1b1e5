"""Records of micro-batches on an emulated S3, written by drivers of which one has taken over from the other."""

from __future__ import annotations

import json
import threading
import uuid
from typing import TYPE_CHECKING

import pytest

from penstock.jobs.storage.checkpoint import RETAINED_BATCHES, BatchRecord, Checkpoint
from penstock.jobs.storage.errors import CheckpointDamaged, ConditionalWriteFailed, LeaseLost
from tests.jobs.storage.conftest import BUCKET
from tests.jobs.storage.faulty_s3 import Fault, FaultyS3

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

pytestmark = pytest.mark.emulated


@pytest.fixture
def checkpoint(faulty: FaultyS3) -> Checkpoint:
    return Checkpoint(f"s3a://{BUCKET}/{uuid.uuid4().hex[:8]}/checkpoints/1")


def _record(batch: int, token: int, time_ms: int = 0) -> BatchRecord:
    return BatchRecord(batch=batch, token=token, time_ms=time_ms)


def _written(checkpoint: Checkpoint, batch: int) -> BatchRecord:
    text = checkpoint.get(f"batches/{batch}.json")
    assert text is not None
    return BatchRecord.model_validate_json(text)


def test_a_record_costs_one_conditional_put_and_the_deletion_of_the_expired_one(checkpoint: Checkpoint, faulty: FaultyS3) -> None:
    checkpoint.record(_record(300, 1))
    assert [(method, path.rsplit("/", 1)[-1]) for method, path in faulty.requests] == [
        ("PUT", "300.json"),
        ("DELETE", f"{300 - RETAINED_BATCHES}.json"),
    ]


def test_as_long_as_no_record_has_expired_none_is_deleted(checkpoint: Checkpoint, faulty: FaultyS3) -> None:
    for batch in (0, RETAINED_BATCHES - 1):
        checkpoint.record(_record(batch, 1))
    assert [method for method, _ in faulty.requests] == ["PUT", "PUT"]
    checkpoint.record(_record(RETAINED_BATCHES, 1))
    assert faulty.requests[-1][0] == "DELETE" and faulty.requests[-1][1].endswith("/batches/0.json")


@pytest.mark.parametrize(("first", "second"), [(0, 1), (3, 4), (3, 3)])
def test_a_replay_by_the_same_driver_or_the_next_replaces_the_record(checkpoint: Checkpoint, first: int, second: int) -> None:
    checkpoint.record(_record(5, first))
    checkpoint.record(_record(5, second, time_ms=1))
    assert _written(checkpoint, 5) == _record(5, second, time_ms=1)


def test_a_driver_that_was_replaced_is_refused_and_changes_nothing(checkpoint: Checkpoint) -> None:
    checkpoint.record(_record(5, 4))
    checkpoint.record(_record(5 + RETAINED_BATCHES, 4))
    checkpoint.put_once("batches/105.json", "kept")
    with pytest.raises(LeaseLost) as raised:
        checkpoint.record(_record(5 + RETAINED_BATCHES, 3))
    assert (raised.value.code, raised.value.path) == ("JOB-081", f"{checkpoint.uri}/penstock/batches/{5 + RETAINED_BATCHES}.json")
    assert "token 4" in raised.value.given and "at most 3" in raised.value.need
    assert _written(checkpoint, 5 + RETAINED_BATCHES).token == 4 and checkpoint.get("batches/105.json") == "kept"


def test_a_record_of_a_later_release_is_read_unless_that_has_changed_what_it_means(checkpoint: Checkpoint, s3: S3Client) -> None:
    folder = checkpoint.uri.removeprefix(f"s3a://{BUCKET}/")
    s3.put_object(Bucket=BUCKET, Key=f"{folder}/commits/5", Body=b"v1\n{}")
    record = _record(5, 1).model_dump(by_alias=True)
    assert "format" not in record
    checkpoint.put_once("batches/5.json", json.dumps({**record, "laterField": {"a": 1}}))
    assert checkpoint.last_record() == _record(5, 1)
    checkpoint.delete("batches/5.json")
    checkpoint.put_once("batches/5.json", json.dumps({**record, "format": 2}))
    with pytest.raises(CheckpointDamaged):
        checkpoint.last_record()


@pytest.mark.parametrize("body", ['{"batch": 5}', "{"])
def test_a_record_without_a_token_or_unreadable_is_replaced(checkpoint: Checkpoint, body: str) -> None:
    checkpoint.put_once("batches/5.json", body)
    checkpoint.record(_record(5, 1))
    assert _written(checkpoint, 5).token == 1


def test_of_drivers_at_the_same_time_the_one_with_the_greatest_token_is_recorded(checkpoint: Checkpoint) -> None:
    refused: list[int] = []

    def write(token: int) -> None:
        try:
            Checkpoint(checkpoint.uri).record(_record(5, token))
        except LeaseLost:
            refused.append(token)

    threads = [threading.Thread(target=write, args=(token,)) for token in range(1, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert _written(checkpoint, 5).token == 6 and 6 not in refused


@pytest.mark.parametrize("fault", [Fault.ANSWER_LOST, Fault.REQUEST_LOST, Fault.CONFLICT])
def test_a_record_is_written_though_an_answer_is_lost(checkpoint: Checkpoint, faulty: FaultyS3, fault: Fault) -> None:
    for token in (1, 2):
        faulty.faults = [fault, Fault.NONE, fault]
        checkpoint.record(_record(5, token))
        faulty.faults.clear()
        assert _written(checkpoint, 5).token == token


def test_without_s3_a_record_is_an_error_and_is_written_later(checkpoint: Checkpoint, faulty: FaultyS3) -> None:
    faulty.always = Fault.CONFLICT
    with pytest.raises(ConditionalWriteFailed):
        checkpoint.record(_record(5, 1))
    faulty.always = Fault.NONE
    checkpoint.record(_record(5, 1))
    assert _written(checkpoint, 5).token == 1


def test_the_greatest_token_is_that_of_the_last_record(checkpoint: Checkpoint) -> None:
    assert checkpoint.greatest_token() == 0
    for batch, token in ((9, 1), (10, 4)):
        checkpoint.record(_record(batch, token))
    assert checkpoint.greatest_token() == 4
