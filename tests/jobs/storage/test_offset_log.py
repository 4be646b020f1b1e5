"""The settings that a checkpoint keeps to, by Spark's offset logs."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING

import pytest

from penstock.jobs.storage.checkpoint import Checkpoint
from penstock.jobs.storage.offset_log import fixed_settings
from tests.jobs.storage.conftest import BUCKET
from tests.jobs.storage.faulty_s3 import FaultyS3

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

# As PySpark 4.3.0 writes it for a window over a topic: its second micro-batch, which has no new records.
LOG = (
    "v1\n"
    '{"batchWatermarkMs":1743856191000,"batchTimestampMs":1795468195357,"conf":{'
    ""
    '"spark.sql.streaming.stateStore.providerClass":"org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",'
    '"spark.sql.dropDuplicates.deterministicKeyOrder.enabled":"true",'
    '"spark.sql.streaming.stateStore.rocksdb.mergeOperatorVersion":"2",'
    '"spark.sql.streaming.stateStore.rocksdb.formatVersion":"5",'
    '"spark.sql.streaming.queryEvolution.enableSourceEvolution":"false",'
    '"spark.sql.streaming.stateStore.encodingFormat":"unsaferow",'
    '"spark.sql.streaming.statefulOperator.useStrictDistribution":"true",'
    '"spark.sql.streaming.flatMapGroupsWithState.stateFormatVersion":"2","spark.sql.streaming.multipleWatermarkPolicy":"min",'
    '"spark.sql.streaming.stateStore.rowChecksum.enabled":"false",'
    '"spark.sql.streaming.statefulOperator.alwaysNullableOutput.enabled":"true",'
    '"spark.sql.streaming.aggregation.stateFormatVersion":"2","spark.sql.function.protobufExtensions.enabled":"false",'
    '"spark.sql.shuffle.partitions":"2","spark.sql.streaming.join.stateFormatVersion":"3",'
    '"spark.sql.streaming.stateStore.compression.codec":"lz4",'
    '"spark.sql.optimizer.pruneFiltersCanPruneStreamingSubplan":"false"'
    "}}\n"
    '{"t04410934-a":{"0":2}}'
)


def _log(partitions: int) -> str:
    return LOG.replace('"spark.sql.shuffle.partitions":"2"', f'"spark.sql.shuffle.partitions":"{partitions}"')


def test_the_log_has_the_shuffle_partitions_of_the_first_micro_batch() -> None:
    assert (fixed_settings(LOG).shuffle_partitions, fixed_settings(_log(32_768)).shuffle_partitions) == (2, 32_768)


def test_the_log_has_the_state_store() -> None:
    assert fixed_settings(LOG).state_backend == "rocksdb"
    heap = LOG.replace("RocksDBStateStoreProvider", "HDFSBackedStateStoreProvider")
    assert fixed_settings(heap).state_backend == "memory"
    assert fixed_settings("").state_backend is None


@pytest.mark.parametrize(
    "log",
    [
        "",
        "v1",
        "v1\n{}",
        'v1\n{"batchWatermarkMs":0,"batchTimestampMs":1,"conf":{}}\n-',
        'v1\n{"conf":{"spark.sql.shuffle.partitions":"many"}}\n-',
        'v1\n{"conf":{"spark.sql.shuffle.partitions":"0"}}\n-',
        'v1\n{"conf":{"spark.sql.shuffle.part',
    ],
)
def test_a_log_without_a_number_says_nothing(log: str) -> None:
    assert fixed_settings(log).shuffle_partitions is None


@pytest.fixture
def folder() -> str:
    return f"{uuid.uuid4().hex[:8]}/checkpoints/1"


def _put(s3: S3Client, folder: str, logs: dict[str, bytes]) -> None:
    for name, content in logs.items():
        s3.put_object(Bucket=BUCKET, Key=f"{folder}/{name}", Body=content)


@pytest.mark.emulated
def test_the_newest_log_of_the_querys_own_checkpoint_counts(s3: S3Client, faulty: FaultyS3, folder: str) -> None:
    logs = {"offsets/9": _log(3), "offsets/10": _log(4), "queries/other/offsets/11": _log(5)}
    _put(s3, folder, {name: text.encode() for name, text in logs.items()} | {"offsets/.12.crc": b"x", "offsets/12.tmp": b"x"})
    faulty.requests.clear()
    checkpoint = Checkpoint(f"s3a://{BUCKET}/{folder}")
    assert checkpoint.fixed_settings().shuffle_partitions == 4
    assert [method for method, _ in faulty.requests] == ["GET", "GET"]
    assert checkpoint.of_query("other").fixed_settings().shuffle_partitions == 5


@pytest.mark.emulated
def test_a_checkpoint_that_has_not_begun_has_none_after_one_request(s3: S3Client, faulty: FaultyS3, folder: str) -> None:
    _put(s3, folder, {"metadata": json.dumps({"id": "x"}).encode()})
    faulty.requests.clear()
    assert Checkpoint(f"s3a://{BUCKET}/{folder}").fixed_settings().shuffle_partitions is None
    assert len(faulty.requests) == 1


@pytest.mark.emulated
def test_what_is_wrong_with_a_log_is_left_to_spark(s3: S3Client, folder: str) -> None:
    _put(s3, folder, {"offsets/0": b"v1\n\xff\xfe"})
    assert Checkpoint(f"s3a://{BUCKET}/{folder}").fixed_settings().shuffle_partitions is None
