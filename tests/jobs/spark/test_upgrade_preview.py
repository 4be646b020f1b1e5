"""``penstock upgrade preview`` of a job that runs: both versions of its code, the brokers and S3 are real, or the tier's."""

from __future__ import annotations

import argparse
import json
import time
import uuid
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from penstock.infra.environment import Environment
from penstock.scripts.cli import upgrade
from penstock.scripts.emulation.emulated_aws import EmulatedAws
from tests.emulated.small_stacks import environment
from tests.jobs.spark.running import CHECKPOINTS, OUTPUT, Surroundings, TestedJob

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

APP = """\
from penstock import Job, Tag, aggregate, tumbling


def build(job: Job) -> None:
    rows = job.source("a", "key string, at string, n int").select(key="key", n="{n}")
    windows = aggregate(rows, tumbling("10s"), keys=["key"], total="sum(n)")
    job.write(windows.select(key="key", total="total", begins="window_start"), "out")
    job.side_output("errors")
    job.side_output("late", Tag.LATE)
"""


def _row(clock: str, key: str, n: int) -> dict[str, Any]:
    return {"key": key, "at": f"2025-04-05T12:{clock}Z", "n": n}


def folders(s3: S3Client) -> frozenset[str]:
    """The folders of the jobs' buckets. Those of jobs that have ended may still change: Spark maintains their state until it notices."""
    return frozenset(_folder(key) for bucket in (CHECKPOINTS, OUTPUT) for key, _ in _objects(s3, bucket))


def written(s3: S3Client, others: AbstractSet[str]) -> list[tuple[str, str, str]]:
    """Everything in the jobs' buckets but what lies in the folders of other jobs."""
    return [(bucket, key, tag) for bucket in (CHECKPOINTS, OUTPUT) for key, tag in _objects(s3, bucket) if _folder(key) not in others]


def _objects(s3: S3Client, bucket: str) -> Iterator[tuple[str, str]]:
    """Keys with what changes when they are written again; uploads that are not completed, too."""
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket):
        yield from ((item["Key"], item["ETag"]) for item in page.get("Contents", []))
    yield from ((upload["Key"], upload["UploadId"]) for upload in s3.list_multipart_uploads(Bucket=bucket).get("Uploads", []))


def _folder(key: str) -> str:
    return key.partition("/")[0]


def topics_of(brokers: str, job: TestedJob) -> dict[str, int]:
    """The ends of the job's topics, and what its consumer group has committed."""
    consumer = Consumer({"bootstrap.servers": brokers, "group.id": f"penstock.{job.name}"})
    try:
        names = [*job.topics.values(), f"{job.name}-errors", f"{job.name}-late"]
        ends = {name: consumer.get_watermark_offsets(TopicPartition(name, 0), timeout=30)[1] for name in names}
        committed = consumer.committed([TopicPartition(name, 0) for name in names], timeout=30)
        return ends | {f"committed of {one.topic}": one.offset for one in committed}
    finally:
        consumer.close()


def environment_of(aws: EmulatedAws, job: TestedJob, folder: Path) -> Path:
    """The file of an environment that has the job."""
    data = environment(aws, f"p{uuid.uuid4().hex[:8]}").model_dump(by_alias=True, exclude_none=True)
    data["spec"] |= {"jobs": [str(job.spec)], "buckets": {"checkpoints": CHECKPOINTS, "output": OUTPUT}}
    file = folder / "environment.yaml"
    file.write_text(Environment.model_validate(data).text(), encoding="utf-8")
    return file


def test_a_preview_shows_the_rows_that_changed_code_writes_otherwise_and_writes_nothing(
    surroundings: Surroundings, aws: EmulatedAws, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    others = folders(surroundings.s3)
    name = f"previewed_{uuid.uuid4().hex[:8]}"
    app, old = tmp_path / f"{name}.py", tmp_path / "old"
    app.write_text(APP.format(n="n"), encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    job = surroundings.job(name, sources={"a": 1})
    job.edit(lambda spec: spec["sources"]["a"]["kafka"].update(commitOffsets=True))
    with job.running() as running:
        job.feed("a", _row("30:01", "k", 2), _row("30:02", "l", 1))
        running.until_read({"a": [2]})
        since_ms = round(time.time() * 1000)
        job.feed("a", _row("30:05", "k", 3), _row("30:41", "l", 1), {"key": 7})
        running.until_read({"a": [5]})
        # It goes on while it is previewed; what comes now is not committed, and so not part of it.
    job.feed("a", _row("59:00", "end", 9))
    # As it would be deployed, the new code lies beside the spec: it counts larger numbers twice.
    old.mkdir()
    app.rename(old / app.name)
    app.write_text(APP.format(n="if(n > 2, 2 * n, n)"), encoding="utf-8")
    file = environment_of(aws, job, tmp_path)
    before = written(surroundings.s3, others), topics_of(surroundings.brokers, job)

    parser = argparse.ArgumentParser()
    upgrade.add_arguments(parser)
    shared = [str(file), "--job", job.name, "--brokers", surroundings.brokers, "--before", str(old)]
    words = ["preview", *shared, "--since", str(since_ms), "--key", "out=key,begins", "-o", "json"]
    assert upgrade.run(parser.parse_args(words)) == 0
    found = json.loads(capsys.readouterr().out)

    assert (written(surroundings.s3, others), topics_of(surroundings.brokers, job)) == before
    assert (found["withState"], found["queries"][""]["batch"] >= 0, found["notes"]) == (True, True, [])
    outputs = {one["output"]: one for one in found["outputs"]}
    first = "2025-04-05T12:30:00.000Z"
    # The 2 of before that time is in the state that both go on with.
    assert outputs["out"]["changedRows"] == [
        {"before": {"key": "k", "total": 5, "begins": first}, "after": {"key": "k", "total": 8, "begins": first}}
    ]
    counts = {kind: outputs["out"][kind] for kind in ("before", "after", "added", "gone", "changed")}
    assert counts == {"before": 3, "after": 3, "added": 0, "gone": 0, "changed": 1}
    assert [(outputs[sink]["before"], outputs[sink]["changed"]) for sink in ("errors", "late")] == [(1, 0), (0, 0)]
