"""Checkpoints of earlier releases, on which later ones are tried. `tests.jobs.spark.record_checkpoint` records one.

A recording is an archive in `FOLDER` with the objects of both buckets as the job left them when it was stopped, below the buckets' names.
The records that it had read are `BEFORE`: written again to topics of the same names, they have the same offsets.
"""

from __future__ import annotations

import json
import tarfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.jobs.spark.running import CHECKPOINTS, OUTPUT, Surroundings, TestedJob

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

FOLDER = Path(__file__).parent / "recordings"
NAME = "every-state"
SINKS = ("pairs", "names", "once")


def _row(name: str, key: str, seconds: int) -> Mapping[str, Any]:
    return {"key": key, "at": f"2025-04-05T12:{30 + seconds // 60:02}:{seconds % 60:02}Z", "name": name}


# Source -> records of micro-batches, one after another. The bound of both is 10 s.
BEFORE: list[Mapping[str, list[Mapping[str, Any]]]] = [
    {"a": [_row("a1", "k", 1), _row("a2", "l", 4)], "b": [_row("b1", "k", 2), _row("b2", "m", 5)]},
    {"a": [_row("a3", "k", 12), _row("a4", "l", 15)], "b": [_row("b1", "k", 14), _row("b3", "n", 16)]},
    {"a": [_row("a5", "m", 18), _row("a6", "k", 31)], "b": [_row("b4", "k", 32)]},
]
AFTER: list[Mapping[str, list[Mapping[str, Any]]]] = [
    # Late by the recorded watermark, of 21 s; in the windows and within reach of what was recorded.
    {"a": [_row("late", "k", 20), _row("a7", "k", 33)], "b": [_row("b1", "k", 34), _row("b5", "l", 36)]},
    {"a": [_row("end", "z", 1500)], "b": [_row("end", "z", 1500)]},
    {"a": [_row("past", "z", 1501)], "b": [_row("past", "z", 1501)]},
]

# Each name of the left side with each of the right side whose rows have its key and lie within a minute, once for each such row.
PAIRS = Counter(
    [(a, b) for a in ("a1", "a3", "a6", "a7") for b in ("b1", "b1", "b1", "b4")]
    + [("a2", "b5"), ("a4", "b5"), ("a5", "b2")]
    + [(a, b) for a in ("end", "past") for b in ("end", "past")]
)


def every_state(surroundings: Surroundings, job_name: str = NAME) -> TestedJob:
    """The job: under the name of the recordings once for each broker and bucket, and any other name once."""
    sinks = {name: {"files": {"path": f"{job_name}-{name}", "prefix": "part-", "roll": {"interval": "1ms"}}} for name in SINKS}
    job = surroundings.job("tests.jobs.spark.apps.every_state", sources={"a": 1, "b": 1}, name=job_name)
    # Four queries that ask for input a thousand times a second would leave each other little time.
    return job.edit(lambda spec: (spec["sinks"].update(sinks), spec.update(trigger="100ms")))


def run(job: TestedJob, batches: list[Mapping[str, list[Mapping[str, Any]]]], read: Mapping[str, int] | None = None) -> None:
    """Feeds micro-batches one after another, and stops the job once it has committed them.

    Args:
        job: of `every_state`.
        batches: source -> records.
        read: source -> records that are in its topic already.
    """
    ends = dict.fromkeys(job.topics, 0) | dict(read or {})
    with job.running() as running:
        for batch in batches:
            for source, records in batch.items():
                job.feed(source, *records)
                ends[source] += len(records)
            running.until_read({source: [end] for source, end in ends.items()})


def assert_every_row(job: TestedJob) -> None:
    """Each row of `BEFORE` and `AFTER` is written once, by all queries."""
    assert [(row["key"], row["n"]) for row in job.rows()] == [("k", 1), ("k", 1), ("k", 2), ("l", 1), ("l", 1), ("m", 1)]
    assert Counter((row["left"], row["right"]) for row in job.rows_of("pairs")) == PAIRS
    names = [("k", "a1"), ("k", "a3"), ("k", "a6a7"), ("l", "a2"), ("l", "a4"), ("m", "a5")]
    assert [(row["key"], row["names"]) for row in job.rows_of("names")] == names
    assert [row["name"] for row in job.rows_of("once")] == ["b1", "b2", "b3", "b4", "b5", "end", "past"]
    # By the watermark of the recorded micro-batches.
    assert [json.loads(record["value"])["name"] for record in job.side_outputs("late")] == ["late"]


def objects(s3: S3Client) -> Iterator[tuple[str, bytes]]:
    """The job's objects: bucket and key, and content."""
    for bucket in (CHECKPOINTS, OUTPUT):
        for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=NAME):
            for one in page.get("Contents", []):
                yield f"{bucket}/{one['Key']}", s3.get_object(Bucket=bucket, Key=one["Key"])["Body"].read()


def restore(s3: S3Client, archive: Path) -> None:
    """Puts the objects of an archive into the buckets."""
    with tarfile.open(archive) as tar:
        for member in tar:
            file = tar.extractfile(member)
            assert file is not None
            bucket, _, key = member.name.partition("/")
            s3.put_object(Bucket=bucket, Key=key, Body=file.read())
