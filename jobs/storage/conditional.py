"""Conditional writes to S3: create an object if it does not exist, or replace it if it has not changed.

S3 decides them atomically, so that of several writers exactly one succeeds. Two answers need care. S3 may write the object and lose the
answer; the client then repeats the request and is told that the object exists. So each call writes an id of its own into the object's
user metadata, by which it recognises its own write. And S3 answers 409 if another conditional request for the key is in progress: whether
the object exists is then open, and the request is repeated.

Cost: one PUT; one HEAD more if the condition is not met.
Source: Amazon S3 User Guide, "How to prevent object overwrites with conditional writes".
"""

from __future__ import annotations

import random
import re
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError, HTTPClientError
from botocore.exceptions import ConnectionError as NotConnected

from penstock.jobs.storage.errors import ConditionalWriteFailed
from penstock.jobs.storage.s3 import error_code

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

# The key of a call's id in the object's user metadata.
WRITE = "penstock-write"
# Attempts until a conflict is given up, 15 s in all with the pauses below; S3 decides a conflict when the other request ends.
_ATTEMPTS = 10
_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 3.0
_NOT_MET = ("PreconditionFailed", "412")
_CONFLICT = ("ConditionalRequestConflict", "OperationAborted", "409")
_GONE = ("NoSuchKey", "404")
# The message of io.penstock.checkpoint.ConditionalOutputStream (jobs/jvm), which writes Spark's own entries.
_BY_SPARK = re.compile(r"conditional write of (?P<path>\S+) failed: (?P<why>.+)")
# HEAD of an object that does not exist; 403 without the permission to list the whole bucket, which a job does not have.
_NOT_FOUND = ("NoSuchKey", "404", "403")


@dataclass(frozen=True)
class ConditionalWriter:
    """Writer of objects of one bucket.

    Args:
        s3: client.
        bucket: name.
        attempts: until a conflict is given up, at least 1.
        pause: sleeps for a number of seconds before a request is repeated.
    """

    s3: S3Client
    bucket: str
    attempts: int = _ATTEMPTS
    pause: Callable[[float], None] = field(default=time.sleep)

    def create(self, key: str, body: bytes, *, content_type: str | None = None, metadata: Mapping[str, str] | None = None) -> str | None:
        """Writes an object unless it exists.

        Args:
            key: of the object.
            body: its content.
            content_type: its media type.
            metadata: further user metadata.

        Returns:
            The object's ETag; None if another call has written it.

        Raises:
            ConditionalWriteFailed: JOB-082, S3 does not answer.
            ClientError: S3 rejects the request.
        """
        return self._write(key, body, {"IfNoneMatch": "*"}, content_type, metadata or {})

    def replace(self, key: str, body: bytes, etag: str) -> str | None:
        """Writes an object if it is still the one with this ETag.

        An ETag may be a hash of the content: content that returns to an earlier value counts as unchanged.

        Args:
            key: of the object.
            body: its new content.
            etag: of the object to replace, as S3 returned it.

        Returns:
            The object's new ETag; None if it has changed or no longer exists.

        Raises:
            ConditionalWriteFailed: JOB-082, S3 does not answer.
            ClientError: S3 rejects the request.
        """
        return self._write(key, body, {"IfMatch": etag}, None, {})

    def _write(self, key: str, body: bytes, condition: dict[str, str], content_type: str | None, metadata: Mapping[str, str]) -> str | None:
        own = uuid.uuid4().hex
        request = {**condition, "Metadata": {**metadata, WRITE: own}, **({"ContentType": content_type} if content_type else {})}
        last = ""
        for attempt in range(self.attempts):
            if attempt:
                self.pause(min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2**attempt) * random.uniform(0.5, 1.0))
            try:
                with self._answered(key):
                    return self.s3.put_object(Bucket=self.bucket, Key=key, Body=body, **request)["ETag"]  # type: ignore[arg-type]
            except ClientError as error:
                last = str(error)
                if error_code(error) in _GONE and "IfMatch" in condition:
                    return None
                if error_code(error) not in (*_NOT_MET, *_CONFLICT):
                    raise
                existing = self._existing(key) if error_code(error) in _NOT_MET else None
                if existing is not None:
                    return existing[1] if existing[0] == own else None
                # Undecided: a conflict, or an object that was deleted between the two requests.
        raise self._failed(key, last)

    def _existing(self, key: str) -> tuple[str | None, str] | None:
        """Id of the call that wrote an object, and its ETag; None if the object does not exist."""
        try:
            with self._answered(key):
                found = self.s3.head_object(Bucket=self.bucket, Key=key)
        except ClientError as error:
            if error_code(error) in _NOT_FOUND:
                return None
            raise
        return found["Metadata"].get(WRITE), found["ETag"]

    @contextmanager
    def _answered(self, key: str) -> Iterator[None]:
        try:
            yield
        except (HTTPClientError, NotConnected) as error:
            raise self._failed(key, str(error)) from error
        except ClientError as error:
            if int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)) >= 500:
                raise self._failed(key, str(error)) from error
            raise

    def _failed(self, key: str, given: str) -> ConditionalWriteFailed:
        return _failed(f"s3a://{self.bucket}/{key}", given)


def undecided_write(failure: BaseException) -> ConditionalWriteFailed | None:
    """The failed conditional write of one of Spark's own files that a query has ended with; None if it has ended with anything else."""
    match = _BY_SPARK.search(str(failure))
    return _failed(match["path"], match["why"]) if match else None


def _failed(path: str, given: str) -> ConditionalWriteFailed:
    return ConditionalWriteFailed(
        path=path,
        given=given,
        need="an answer from S3 to a conditional write",
        fix="none needed for a short outage: nothing is lost, and the job resumes from its checkpoint when it is started again",
    )
