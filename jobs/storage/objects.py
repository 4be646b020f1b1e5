"""Penstock's own objects in a folder on S3, below ``penstock/``: those of a checkpoint, or of a job."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from botocore.exceptions import BotoCoreError, ClientError

from penstock.jobs.storage.conditional import ConditionalWriter
from penstock.jobs.storage.errors import BucketUnreachable
from penstock.jobs.storage.s3 import missing, place_of, shared_client

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3.type_defs import ObjectIdentifierTypeDef

_DELETES_AT_A_TIME = 1_000


class Listed(NamedTuple):
    """An object as S3 lists it.

    Args:
        bytes: its size.
        written: when, by S3's clock.
    """

    bytes: int
    written: datetime


class Objects:
    """A folder on S3 with objects of Penstock.

    Args:
        uri: ``s3a://bucket/folder``.
        s3: client; by default a job's own.

    Raises:
        BucketUnreachable: JOB-009, it is none.
    """

    def __init__(self, uri: str, s3: S3Client | None = None) -> None:
        self._bucket, self._folder = place_of(uri)
        self.uri = f"s3a://{self._bucket}/{self._folder}"
        self._given = s3

    def get(self, name: str) -> str | None:
        """An object's text; None if it does not exist."""
        stored = self._with_etag(self._key(name))
        return stored[0] if stored else None

    def _with_etag(self, key: str) -> tuple[str, str] | None:
        """An object's text and ETag; None if it does not exist."""
        try:
            answer = self._s3.get_object(Bucket=self._bucket, Key=key)
            return answer["Body"].read().decode(), answer["ETag"]
        except (ClientError, BotoCoreError) as error:
            if isinstance(error, ClientError) and self._missing(key, error):
                return None
            raise self._unreachable(error) from error

    def _missing(self, key: str, error: ClientError) -> bool:
        try:
            return missing(self._s3, self._bucket, key, error)
        except (ClientError, BotoCoreError):
            return False

    def put_once(self, name: str, text: str) -> bool:
        """Writes an object unless it exists, atomically.

        Returns:
            Whether this call wrote it.

        Raises:
            ConditionalWriteFailed: JOB-082.
        """
        return self._conditionally(lambda writer: writer.create(self._key(name), text.encode())) is not None

    def content(self, name: str) -> bytes | None:
        """The content of any object below the folder, also of those that Penstock has not written; None if it does not exist.

        Raises:
            BucketUnreachable: JOB-009.
        """
        key = f"{self._folder}/{name}"
        try:
            return self._s3.get_object(Bucket=self._bucket, Key=key)["Body"].read()
        except (ClientError, BotoCoreError) as error:
            if isinstance(error, ClientError) and self._missing(key, error):
                return None
            raise self._unreachable(error) from error

    def listed(self) -> dict[str, Listed]:
        """All objects below the folder, by their names without its prefix; without the empty objects that stand for directories.

        Raises:
            BucketUnreachable: JOB-009.
        """
        prefix = f"{self._folder}/"
        try:
            pages = self._s3.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=prefix)
            items = [item for page in pages for item in page.get("Contents", []) if not item["Key"].endswith("/")]
        except (ClientError, BotoCoreError) as error:
            raise self._unreachable(error) from error
        return {item["Key"].removeprefix(prefix): Listed(item["Size"], item["LastModified"]) for item in items}

    def names(self, folder: str) -> list[str]:
        """Names of the objects in a directory, without its prefix, sorted.

        Args:
            folder: with a trailing slash.
        """
        return self._names(f"penstock/{folder}")

    def delete(self, name: str) -> None:
        """Deletes an object; it need not exist."""
        try:
            self._s3.delete_object(Bucket=self._bucket, Key=self._key(name))
        except (ClientError, BotoCoreError) as error:
            raise self._unreachable(error) from error

    def delete_expired(self, named: Callable[[int], str], number: int) -> None:
        """Deletes the object with a number, of those that are numbered from 0: nothing, as long as none has expired.

        Args:
            named: number -> name of an object.
            number: of the object that has expired.
        """
        if number >= 0:
            self.delete(named(number))

    def delete_all(self, names: Sequence[str]) -> None:
        """Deletes objects, up to a thousand per request; they need not exist."""
        for start in range(0, len(names), _DELETES_AT_A_TIME):
            some: list[ObjectIdentifierTypeDef] = [{"Key": self._key(name)} for name in names[start : start + _DELETES_AT_A_TIME]]
            try:
                answer = self._s3.delete_objects(Bucket=self._bucket, Delete={"Objects": some, "Quiet": True})
            except (ClientError, BotoCoreError) as error:
                raise self._unreachable(error) from error
            # S3 reports the objects that it did not delete in a successful response.
            for error_of_one in answer.get("Errors", []):
                raise self._unreachable(OSError(f"{error_of_one.get('Key')}: {error_of_one.get('Message')}"))

    @cached_property
    def _s3(self) -> S3Client:
        return self._given or shared_client()

    def _conditionally(self, write: Callable[[ConditionalWriter], str | None]) -> str | None:
        try:
            return write(ConditionalWriter(self._s3, self._bucket))
        except (ClientError, BotoCoreError) as error:
            raise self._unreachable(error) from error

    def _names(self, folder: str) -> list[str]:
        prefix = f"{self._folder}/{folder}"
        try:
            pages = self._s3.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=prefix)
            return [item["Key"].removeprefix(prefix) for page in pages for item in page.get("Contents", [])]
        except (ClientError, BotoCoreError) as error:
            raise self._unreachable(error) from error

    def _folders(self, parent: str) -> list[str]:
        """Names of the folders within one, sorted; also those that Penstock has not made."""
        prefix = f"{self._folder}/{parent}"
        try:
            pages = self._s3.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=prefix, Delimiter="/")
            folders = [folder["Prefix"] for page in pages for folder in page.get("CommonPrefixes", [])]
        except (ClientError, BotoCoreError) as error:
            raise self._unreachable(error) from error
        return sorted(folder.removeprefix(prefix).rstrip("/") for folder in folders)

    def _key(self, name: str) -> str:
        return f"{self._folder}/penstock/{name}"

    def _unreachable(self, error: Exception) -> BucketUnreachable:
        return BucketUnreachable(
            path=self.uri, given=str(error), need="a bucket with read and write access", fix="check its name and the job's permissions"
        )


class Folder(Objects):
    """A folder whose objects are called by their whole names below it, those of Penstock and of Spark alike."""

    def _key(self, name: str) -> str:
        return f"{self._folder}/{name}"
