"""An emulated S3 with a checkpoint that Spark has written: `tests.jobs.spark.recorded_checkpoints` says of what job."""

from __future__ import annotations

import tarfile
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import boto3
import pytest

from penstock.jobs.savepoints.folder import SavepointFolder, Savepoints
from penstock.jobs.savepoints.manifest import Savepoint
from penstock.jobs.savepoints.taking import Taken, take
from penstock.jobs.storage.checkpoint import Checkpoint
from penstock.jobs.storage.job_folder import JobFolder
from tests.jobs.storage.conftest import BUCKET, aws, faulty

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

__all__ = ["aws", "faulty"]
RECORDING = Path(__file__).parents[1] / "spark" / "recordings" / "before-generations.tar.gz"
_PREFIX = "test-checkpoints/every-state/"
# An aggregation and a keyed function; the other queries of the recording add nothing here.
_LEFT_OUT = ("queries/pairs/", "queries/once/")


@dataclass(frozen=True)
class RecordedJob:
    """A job with the recorded checkpoint."""

    s3: S3Client
    uri: str

    @property
    def folder(self) -> JobFolder:
        return JobFolder(self.uri)

    @property
    def checkpoint(self) -> Checkpoint:
        return self.folder.checkpoint(1)

    def savepoint(self, name: str = "one") -> SavepointFolder:
        return Savepoints(self.uri).of(name)

    def take(self, name: str = "one", said: Callable[[str], object] = lambda _: None, until: datetime | None = None) -> Savepoint:
        of = Taken(job="every-state", environment="tests", by=None, generation=None, until=until)
        return take(self.checkpoint, self.savepoint(name), of, self.s3, said, pause_s=0)

    def key(self, name: str) -> str:
        """The key of an object of the checkpoint."""
        return f"{self.checkpoint.uri.removeprefix(f's3a://{BUCKET}/')}/{name}"

    def delete(self, name: str) -> bytes:
        """Deletes an object of the checkpoint; returns what it had."""
        content = self.s3.get_object(Bucket=BUCKET, Key=self.key(name))["Body"].read()
        self.s3.delete_object(Bucket=BUCKET, Key=self.key(name))
        return content

    def put(self, name: str, content: bytes) -> None:
        """Writes an object of the checkpoint."""
        self.s3.put_object(Bucket=BUCKET, Key=self.key(name), Body=content)


@pytest.fixture
def s3(aws: object) -> S3Client:
    return boto3.client("s3")


@pytest.fixture
def empty(s3: S3Client) -> RecordedJob:
    """Without the checkpoint."""
    return RecordedJob(s3, f"s3a://{BUCKET}/{uuid.uuid4().hex[:8]}")


@pytest.fixture
def job(s3: S3Client, empty: RecordedJob) -> RecordedJob:
    name = empty.uri.rpartition("/")[2]
    with tarfile.open(RECORDING) as tar:
        for member in tar:
            file = tar.extractfile(member)
            if file is not None and member.name.startswith(_PREFIX) and not any(one in member.name for one in _LEFT_OUT):
                s3.put_object(Bucket=BUCKET, Key=f"{name}/{member.name.removeprefix(_PREFIX)}", Body=file.read())
    return empty
