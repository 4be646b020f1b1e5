"""A local run as it can be read back: its input from the brokers, its micro-batches from Spark's offset log, its output from the bucket."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.jobs.local.recording import RecordedBatch, Recording
from penstock.scripts.local import kafka_topics
from penstock.scripts.local.kafka_topics import Fed

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


@dataclass(frozen=True)
class OutputFile:
    """A file of the output: its key and its size in bytes."""

    key: str
    bytes: int


def recording(
    s3: S3Client,
    address: str,
    checkpoint: tuple[str, str],
    fed: Mapping[str, Fed],
    starts: Mapping[str, Mapping[int, int]],
    queries: Iterable[str] = (),
) -> Recording:
    """The run's input and its micro-batch boundaries.

    Args:
        s3: a client.
        address: of the broker.
        checkpoint: bucket and folder.
        fed: topic -> what was written to it.
        starts: topic -> partition -> the first offset that the run read.
        queries: names of the job's further queries, whose checkpoints are below that of the first.
    """
    records = {topic: kafka_topics.recorded(kafka_topics.read(address, topic, what.ends), what.flush) for topic, what in fed.items()}
    bucket, folder = checkpoint
    further = {name: _in_order(s3, bucket, f"{folder}/queries/{name}") for name in queries}
    return Recording(records, {topic: what.partitions for topic, what in fed.items()}, _in_order(s3, bucket, folder), starts, further)


def output_files(s3: S3Client, bucket: str, path: str) -> list[OutputFile]:
    """The files that a reader of the bucket sees."""
    return [OutputFile(item["Key"], item["Size"]) for item in _objects(s3, bucket, f"{path}/")]


def output_rows(s3: S3Client, bucket: str, files: list[OutputFile]) -> Iterator[dict[str, Any]]:
    """The rows of JSON-lines files."""
    for file in files:
        for line in s3.get_object(Bucket=bucket, Key=file.key)["Body"].iter_lines(chunk_size=1 << 20):
            yield json.loads(line)


def topic_rows(address: str, topic: str) -> Iterator[dict[str, Any]]:
    """The rows of a topic that the job writes JSON into."""
    for message in kafka_topics.read(address, topic):
        yield json.loads(message.value() or b"null")


def count_records(address: str, topic: str) -> int:
    """Number of side-output records in a topic; one that a replay wrote twice counts once, by its key.

    Rows without a record have no key: each counts.
    """
    keys = Counter(message.key() for message in kafka_topics.read(address, topic))
    return keys.pop(None, 0) + len(keys)


def starts_by_topic(offsets: Mapping[str, Mapping[str, Mapping[str, int]]]) -> dict[str, dict[int, int]]:
    """The driver reports its start offsets by source and with numbers as text; a recording has them by topic."""
    return {
        topic: {int(partition): offset for partition, offset in partitions.items()}
        for topics in offsets.values()
        for topic, partitions in topics.items()
    }


def _in_order(s3: S3Client, bucket: str, folder: str) -> list[RecordedBatch]:
    return sorted(_batches(s3, bucket, folder), key=lambda batch: batch.number)


def _batches(s3: S3Client, bucket: str, folder: str) -> Iterator[RecordedBatch]:
    """Spark's offset log: a version, a line of metadata, a line per source."""
    for item in _objects(s3, bucket, f"{folder}/offsets/"):
        name = item["Key"].rsplit("/", 1)[-1]
        if not name.isdigit():
            continue
        _, metadata, *sources = s3.get_object(Bucket=bucket, Key=item["Key"])["Body"].read().decode().splitlines()
        fields = json.loads(metadata)
        yield RecordedBatch(int(name), fields["batchTimestampMs"], fields["batchWatermarkMs"], _ends(sources))


def _ends(sources: list[str]) -> dict[str, dict[int, int]]:
    ends: dict[str, dict[int, int]] = {}
    for line in sources:
        # A source without new data since the query began has a dash.
        topics = json.loads(line) if line != "-" else {}
        # Sources other than Kafka have something else there: a heartbeat a number, files the position in their own log.
        for topic, partitions in topics.items() if isinstance(topics, dict) else ():
            if not isinstance(partitions, dict):
                continue
            ends[topic] = {int(partition): offset for partition, offset in partitions.items()}
    return ends


def _objects(s3: S3Client, bucket: str, prefix: str) -> Iterator[Any]:
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix):
        yield from page.get("Contents", [])
