"""Conditional writes to an emulated S3 that loses requests and answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

import pytest
from botocore.exceptions import ClientError

from penstock.jobs.storage.checkpoint import Checkpoint
from penstock.jobs.storage.conditional import ConditionalWriter
from penstock.jobs.storage.errors import BucketUnreachable, ConditionalWriteFailed
from tests.jobs.storage.conftest import BUCKET
from tests.jobs.storage.faulty_s3 import Fault, FaultyS3

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

pytestmark = pytest.mark.emulated


@pytest.fixture
def key(request: pytest.FixtureRequest) -> str:
    return f"job/1/penstock/{request.node.name}"


@pytest.fixture
def writer(s3: S3Client) -> ConditionalWriter:
    return ConditionalWriter(s3, BUCKET, pause=lambda _: None)


def _content(s3: S3Client, key: str) -> bytes:
    return s3.get_object(Bucket=BUCKET, Key=key)["Body"].read()


def test_an_object_is_created_once_with_one_request(writer: ConditionalWriter, faulty: FaultyS3, s3: S3Client, key: str) -> None:
    etag = writer.create(key, b"first")
    assert etag == s3.head_object(Bucket=BUCKET, Key=key)["ETag"]
    assert [method for method, _ in faulty.requests] == ["PUT", "HEAD"]
    assert writer.create(key, b"second") is None
    assert _content(s3, key) == b"first"


def test_an_object_is_replaced_only_if_unchanged(writer: ConditionalWriter, s3: S3Client, key: str) -> None:
    first = writer.create(key, b"first")
    assert first
    second = writer.replace(key, b"second", first)
    assert second and second != first
    assert writer.replace(key, b"third", first) is None
    assert _content(s3, key) == b"second"


def test_an_object_that_is_gone_is_not_replaced(writer: ConditionalWriter, s3: S3Client, key: str) -> None:
    etag = writer.create(key, b"first")
    assert etag
    s3.delete_object(Bucket=BUCKET, Key=key)
    assert writer.replace(key, b"second", etag) is None


def test_a_media_type_and_metadata_are_kept(writer: ConditionalWriter, s3: S3Client, key: str) -> None:
    writer.create(key, b"{}", content_type="application/json", metadata={"penstock-token": "t"})
    head = s3.head_object(Bucket=BUCKET, Key=key)
    assert (head["ContentType"], head["Metadata"]["penstock-token"]) == ("application/json", "t")


@pytest.mark.parametrize("fault", [Fault.ANSWER_LOST, Fault.REQUEST_LOST, Fault.CONFLICT, Fault.UNAVAILABLE])
def test_a_call_recognises_its_own_write(writer: ConditionalWriter, faulty: FaultyS3, s3: S3Client, key: str, fault: Fault) -> None:
    faulty.faults = [fault]
    etag = writer.create(key, b"first")
    assert etag == s3.head_object(Bucket=BUCKET, Key=key)["ETag"]
    faulty.faults = [fault]
    assert writer.replace(key, b"second", etag) == s3.head_object(Bucket=BUCKET, Key=key)["ETag"]
    assert _content(s3, key) == b"second"


def test_the_same_content_written_by_another_is_not_ones_own(writer: ConditionalWriter, faulty: FaultyS3, key: str) -> None:
    writer.create(key, b"the same")
    faulty.faults = [Fault.REQUEST_LOST]
    assert writer.create(key, b"the same") is None


def test_a_conflict_does_not_mean_that_the_object_exists(writer: ConditionalWriter, faulty: FaultyS3, s3: S3Client, key: str) -> None:
    faulty.faults = [Fault.CONFLICT] * 5
    assert writer.create(key, b"first") is not None
    assert _content(s3, key) == b"first"


@pytest.mark.parametrize("fault", [Fault.CONFLICT, Fault.REQUEST_LOST, Fault.UNAVAILABLE])
def test_an_s3_that_never_decides_is_an_error_with_the_key(
    writer: ConditionalWriter, faulty: FaultyS3, s3: S3Client, key: str, fault: Fault
) -> None:
    faulty.always = fault
    with pytest.raises(ConditionalWriteFailed) as raised:
        writer.create(key, b"first")
    assert (raised.value.code, raised.value.path) == ("JOB-082", f"s3a://{BUCKET}/{key}")
    faulty.always = Fault.NONE
    assert writer.create(key, b"first") is not None


def test_other_errors_stay_what_they_are(s3: S3Client, key: str) -> None:
    with pytest.raises(ClientError, match="NoSuchBucket"):
        ConditionalWriter(s3, "another-bucket").create(key, b"")
    with pytest.raises(BucketUnreachable):
        Checkpoint("s3a://another-bucket/job/1").put_once("name", "")


def test_of_many_at_once_exactly_one_creates_and_one_replaces(writer: ConditionalWriter, s3: S3Client, key: str) -> None:
    for again in range(10):
        name = f"{key}/{again}"
        (first,) = filter(None, _at_once([partial(writer.create, name, f"{number}".encode()) for number in range(4)]))
        replaced = _at_once([partial(writer.replace, name, f"again {number}".encode(), first) for number in range(4)])
        assert list(filter(None, replaced)) == [s3.head_object(Bucket=BUCKET, Key=name)["ETag"]]


def _at_once(writes: Sequence[Callable[[], str | None]]) -> list[str | None]:
    with ThreadPoolExecutor(len(writes)) as pool:
        return list(pool.map(lambda write: write(), writes))


def test_a_checkpoints_object_is_written_once(faulty: FaultyS3, key: str) -> None:
    checkpoint = Checkpoint(f"s3a://{BUCKET}/{key}", token=3)
    assert checkpoint.token == 3
    faulty.faults = [Fault.ANSWER_LOST]
    assert checkpoint.put_once("once", "mine") and not checkpoint.put_once("once", "another's")
    assert checkpoint.get("once") == "mine"


def test_a_missing_object_is_none_to_a_job_that_may_list_its_folder_only(faulty: FaultyS3, key: str) -> None:
    faulty.denies_missing = True
    checkpoint = Checkpoint(f"s3a://{BUCKET}/{key}")
    checkpoint.put_once("there-too", "")
    assert checkpoint.get("there") is None
    checkpoint.put_once("there", "text")
    assert checkpoint.get("there") == "text"


def test_an_object_that_is_deleted_between_two_requests_is_created(
    writer: ConditionalWriter, faulty: FaultyS3, s3: S3Client, key: str
) -> None:
    faulty.denies_missing = True
    writer.create(key, b"first")

    def delete(method: str, _: str) -> None:
        if method == "PUT":
            faulty.before_answer = None
            s3.delete_object(Bucket=BUCKET, Key=key)

    faulty.before_answer = delete
    assert writer.create(key, b"second") is not None
    assert _content(s3, key) == b"second"
