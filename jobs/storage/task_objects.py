"""What tasks keep in a checkpoint: objects on S3, or files where a job under test has its checkpoint in a folder."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from botocore.exceptions import BotoCoreError, ClientError

from penstock.jobs.storage.conditional import ConditionalWriter
from penstock.jobs.storage.errors import BucketUnreachable
from penstock.jobs.storage.s3 import missing, place_of, shared_client

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


class TaskObjects(ABC):
    """Objects by their names, which begin with the checkpoint's folder."""

    @abstractmethod
    def names(self, folder: str) -> list[str]:
        """Names of the objects below a folder, sorted."""

    @abstractmethod
    def read(self, name: str) -> bytes | None:
        """An object; None if it does not exist."""

    @abstractmethod
    def create(self, name: str, body: bytes) -> bool:
        """Writes an object unless it exists, atomically; whether this call wrote it."""

    @abstractmethod
    def delete(self, name: str) -> None:
        """Deletes an object, if it exists."""


def task_objects(checkpoint: str) -> tuple[TaskObjects, str]:
    """The objects of a checkpoint, and the folder with which their names begin.

    Args:
        checkpoint: its URI.

    Raises:
        BucketUnreachable: JOB-009, it is none.
    """
    if checkpoint.startswith("file:"):
        return Files(), unquote(urlsplit(checkpoint).path)
    bucket, folder = place_of(checkpoint)
    return S3Objects(bucket), folder


class S3Objects(TaskObjects):
    """Objects of a bucket.

    Args:
        bucket: its name.
    """

    def __init__(self, bucket: str) -> None:
        self._bucket = bucket

    def names(self, folder: str) -> list[str]:
        """As `TaskObjects.names`.

        Raises:
            BucketUnreachable: JOB-009.
        """
        with self._s3_errors():
            listed = self._s3.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=folder)
            return [item["Key"] for page in listed for item in page.get("Contents", [])]

    def read(self, name: str) -> bytes | None:
        """As `TaskObjects.read`.

        Raises:
            BucketUnreachable: JOB-009.
        """
        with self._s3_errors():
            try:
                return self._s3.get_object(Bucket=self._bucket, Key=name)["Body"].read()
            except ClientError as error:
                if missing(self._s3, self._bucket, name, error):
                    return None
                raise

    def create(self, name: str, body: bytes) -> bool:
        """As `TaskObjects.create`.

        Raises:
            BucketUnreachable: JOB-009.
        """
        with self._s3_errors():
            return ConditionalWriter(self._s3, self._bucket).create(name, body) is not None

    def delete(self, name: str) -> None:
        """As `TaskObjects.delete`.

        Raises:
            BucketUnreachable: JOB-009.
        """
        with self._s3_errors():
            self._s3.delete_object(Bucket=self._bucket, Key=name)

    @property
    def _s3(self) -> S3Client:
        return shared_client()

    @contextmanager
    def _s3_errors(self) -> Iterator[None]:
        try:
            yield
        except (ClientError, BotoCoreError) as error:
            fix = "check the checkpoint bucket and the job's permissions"
            raise BucketUnreachable(path=f"bucket {self._bucket}", given=str(error), fix=fix) from error


class Files(TaskObjects):
    """Files of this machine, for one driver at a time."""

    def names(self, folder: str) -> list[str]:
        """As `TaskObjects.names`."""
        return sorted(str(file) for file in Path(folder).rglob("*") if file.is_file())

    def read(self, name: str) -> bytes | None:
        """As `TaskObjects.read`."""
        file = Path(name)
        return file.read_bytes() if file.is_file() else None

    def create(self, name: str, body: bytes) -> bool:
        """As `TaskObjects.create`."""
        file = Path(name)
        file.parent.mkdir(parents=True, exist_ok=True)
        try:
            with file.open("xb") as new:
                new.write(body)
        except FileExistsError:
            return False
        return True

    def delete(self, name: str) -> None:
        """As `TaskObjects.delete`."""
        Path(name).unlink(missing_ok=True)
