"""Objects are copied by S3 itself, many at a time, and each copy has the SHA-256 that S3 has computed of it."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

from botocore.exceptions import BotoCoreError, ClientError

from penstock.jobs.storage.errors import BucketUnreachable
from penstock.jobs.storage.s3 import missing

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

# As many connections as a client keeps open by default.
_AT_A_TIME = 10
# What one CopyObject takes (Amazon S3 API Reference, CopyObject); Spark's files of state are of tens of MiB.
LARGEST_BYTES = 5 * 1024**3
_Given = TypeVar("_Given")
_Done = TypeVar("_Done")


@dataclass(frozen=True)
class Copier:
    """Copies objects from a folder to another one.

    Args:
        s3: client with access to both.
        source: ``s3a://bucket/folder``.
        target: likewise.
    """

    s3: S3Client
    source: str
    target: str

    def copy(self, name: str) -> str | None:
        """Copies an object; an existing one is replaced.

        Args:
            name: of the object in both folders.

        Returns:
            The SHA-256 of the copy, in base64; None if the source does not have it.

        Raises:
            BucketUnreachable: JOB-009.
        """
        (bucket, key), (to_bucket, to_key) = _place(self.source, name), _place(self.target, name)
        try:
            answer = self.s3.copy_object(
                Bucket=to_bucket, Key=to_key, CopySource={"Bucket": bucket, "Key": key}, ChecksumAlgorithm="SHA256"
            )
            return answer["CopyObjectResult"].get("ChecksumSHA256") or self._computed(to_bucket, to_key)
        except (ClientError, BotoCoreError) as error:
            if isinstance(error, ClientError) and missing(self.s3, bucket, key, error):
                return None
            raise _unreachable(f"{self.target}/{name}", error) from error

    def put(self, name: str, content: bytes) -> str:
        """Writes an object of the target; returns its SHA-256, in base64.

        Raises:
            BucketUnreachable: JOB-009.
        """
        bucket, key = _place(self.target, name)
        try:
            self.s3.put_object(Bucket=bucket, Key=key, Body=content, ChecksumAlgorithm="SHA256")
        except (ClientError, BotoCoreError) as error:
            raise _unreachable(f"{self.target}/{name}", error) from error
        return sha256(content)

    def checksum(self, name: str) -> str | None:
        """The SHA-256 of an object of the source, in base64, by S3's own or else by reading it; None if it does not exist.

        Raises:
            BucketUnreachable: JOB-009.
        """
        bucket, key = _place(self.source, name)
        try:
            known = self.s3.head_object(Bucket=bucket, Key=key, ChecksumMode="ENABLED").get("ChecksumSHA256")
            return known or self._computed(bucket, key)
        except (ClientError, BotoCoreError) as error:
            if isinstance(error, ClientError) and missing(self.s3, bucket, key, error):
                return None
            raise _unreachable(f"{self.source}/{name}", error) from error

    def _computed(self, bucket: str, key: str) -> str:
        digest = hashlib.sha256()
        for part in self.s3.get_object(Bucket=bucket, Key=key)["Body"].iter_chunks(1024 * 1024):
            digest.update(part)
        return base64.b64encode(digest.digest()).decode()


def sha256(content: bytes) -> str:
    """As S3 has it: in base64."""
    return base64.b64encode(hashlib.sha256(content).digest()).decode()


def each(work: Callable[[_Given], _Done], given: Iterable[_Given], done: Callable[[int], object] = lambda _: None) -> dict[_Given, _Done]:
    """Does something with each of many things, several at a time. After a failure or an interruption nothing more is begun.

    Args:
        work: what is done, in several threads.
        given: the things.
        done: called with the number of those that are done, in this thread.
    """
    with ThreadPoolExecutor(_AT_A_TIME) as pool:
        futures: dict[Future[_Done], _Given] = {pool.submit(work, one): one for one in given}
        try:
            for number, future in enumerate(as_completed(futures), start=1):
                future.result()
                done(number)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        return {one: future.result() for future, one in futures.items()}


def _place(uri: str, name: str) -> tuple[str, str]:
    parts = urlsplit(uri)
    return parts.netloc, f"{parts.path.strip('/')}/{name}"


def _unreachable(path: str, error: Exception) -> BucketUnreachable:
    return BucketUnreachable(
        path=path, given=str(error), need="a bucket with read and write access", fix="check its name, and the permissions on it and its key"
    )
