"""A run as it is read back: Spark's offset log and the files of its output."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import boto3
import pytest

from penstock.jobs.local.recording import RecordedBatch
from penstock.scripts.emulation.emulated_aws import EmulatedAws
from penstock.scripts.local.recorded_run import OutputFile, _batches, _ends, output_files, output_rows, starts_by_topic

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

BUCKET = "recorded"
FOLDER = "job/checkpoints/1"
# As PySpark 4.3.0 writes it, settings left out but one.
METADATA = {"batchWatermarkMs": 1743856189999, "batchTimestampMs": 1743860000123, "conf": {"spark.sql.shuffle.partitions": "4"}}


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Client]:
    with EmulatedAws(log=tmp_path_factory.mktemp("aws") / "aws.log") as aws:
        client = boto3.client(
            "s3", endpoint_url=aws.endpoint, region_name=aws.region, aws_access_key_id="emulated", aws_secret_access_key="emulated"
        )
        client.create_bucket(Bucket=BUCKET)
        yield client


def _put(s3: S3Client, objects: Mapping[str, str]) -> None:
    for key, text in objects.items():
        s3.put_object(Bucket=BUCKET, Key=key, Body=text.encode())


def _log(*sources: str, metadata: Mapping[str, object] = METADATA) -> str:
    return "\n".join(["v1", json.dumps(metadata), *sources])


def test_the_ends_of_every_source_are_taken_together() -> None:
    lines = ['{"events-a":{"0":3,"1":14}}', '{"events-b":{"10":7}}']
    assert _ends(lines) == {"events-a": {0: 3, 1: 14}, "events-b": {10: 7}}


def test_a_source_without_news_since_the_query_began_has_a_dash_and_no_ends() -> None:
    assert _ends(["-", '{"events-b":{"0":7}}']) == {"events-b": {0: 7}}
    assert _ends(["-", "-"]) == {}


def test_first_offsets_are_told_by_source_and_recorded_by_topic() -> None:
    result = {"a": {"events-a": {"0": 5, "10": 0}}, "b": {"events-b": {"0": 2}}}
    assert starts_by_topic(result) == {"events-a": {0: 5, 10: 0}, "events-b": {0: 2}}


@pytest.mark.emulated
def test_the_offset_log_is_read_with_its_clock_and_its_watermark(s3: S3Client) -> None:
    offsets = f"{FOLDER}/offsets"
    _put(
        s3,
        {
            f"{offsets}/0": _log('{"a":{"0":1}}', "-", metadata=METADATA | {"batchWatermarkMs": 0}),
            f"{offsets}/10": _log('{"a":{"0":2}}', '{"b":{"0":4}}'),
            # What an unfinished write and a checksum leave is no micro-batch, nor is what lies beside the log or in another checkpoint.
            f"{offsets}/.11.7c1f.tmp": "v1",
            f"{offsets}/.10.crc": "x",
            f"{FOLDER}/commits/10": "v1\n{}",
            "job/checkpoints/10/offsets/3": _log('{"a":{"0":9}}'),
        },
    )
    batches = sorted(_batches(s3, BUCKET, FOLDER), key=lambda batch: batch.number)
    assert batches == [
        RecordedBatch(0, 1743860000123, 0, {"a": {0: 1}}),
        RecordedBatch(10, 1743860000123, 1743856189999, {"a": {0: 2}, "b": {0: 4}}),
    ]


@pytest.mark.emulated
def test_a_log_of_more_micro_batches_than_a_page_of_s3_holds_is_read_to_its_end(s3: S3Client) -> None:
    _put(s3, {f"long/offsets/{number}": _log('{"a":{"0":1}}') for number in range(1_001)})
    assert {batch.number for batch in _batches(s3, BUCKET, "long")} == set(range(1_001))


@pytest.mark.emulated
def test_the_output_is_read_file_by_file_and_line_by_line(s3: S3Client, tmp_path: Path) -> None:
    # The separators U+2028 and U+0085 end a line for Python's text files, not for JSON lines.
    rows = [{"name": "one"}, {"name": "two \u2028 \u0085 \u00e9"}, {"name": None}]
    lines = [json.dumps(row, ensure_ascii=False) for row in rows]
    _put(s3, {"out/dt=2025-04-05/part-0.json": f"{lines[0]}\n{lines[1]}\n", "out/dt=2025-04-06/part-0.json": f"{lines[2]}\n"})
    _put(s3, {"out-of-it/part-0.json": "{}\n"})
    files = output_files(s3, BUCKET, "out")
    assert [file.key for file in files] == ["out/dt=2025-04-05/part-0.json", "out/dt=2025-04-06/part-0.json"]
    assert files[1] == OutputFile("out/dt=2025-04-06/part-0.json", len(lines[2]) + 1)
    assert list(output_rows(s3, BUCKET, files)) == rows
