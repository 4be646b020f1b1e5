"""Part files on their way to S3: written by tasks as multipart uploads that nobody can see until they are completed."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

from jobs.s3 import client

if TYPE_CHECKING:
    import pyarrow as pa
    from mypy_boto3_s3 import S3Client

# S3 takes pieces of a multipart upload from 5 MiB on, the last one excepted, and at most 10,000 of them (Amazon S3 User Guide, "Amazon S3
# multipart upload limits").
PIECE_BYTES = 8 * 1024 * 1024
TOKEN = "penstock-part"
STAGED_SCHEMA = "key string, upload_id string, token string, etags string, rows long, bytes long, digest long"


class StagedPart(BaseModel):
    """A part file that waits for its upload to be completed.

    Args:
        key: of the object in the bucket.
        upload_id: of the multipart upload.
        token: metadata of the object, by which it is known again once it is published.
        etags: of the upload's pieces, in their order.
        rows: lines in the file.
        bytes: size of the file.
        digest: sum of the rows' hashes modulo 2^64, as a signed number; the order of the rows does not matter.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    key: str
    upload_id: str
    token: str
    etags: tuple[str, ...]
    rows: int
    bytes: int
    digest: int


@dataclass(frozen=True)
class PartWriter:
    """What a task needs to write part files; sent to the tasks.

    Args:
        bucket: name of the bucket.
        folder: below which the part files lie, without slashes at its ends.
        stem: how each file's name begins, the micro-batch's number included.
        suffix: how it ends.
        roll_bytes: a file is closed once it is this large.
    """

    bucket: str
    folder: str
    stem: str
    suffix: str
    roll_bytes: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Writes lines and gives back what was staged, as `STAGED_SCHEMA` has it.

        Args:
            batches: columns ``directory`` (text, may be empty), ``line`` (text) and ``hash`` (long).
        """
        import pyarrow as pa
        from pyspark import TaskContext

        context = TaskContext.get()
        task = _Task(self, context.partitionId() if context else 0)
        for batch in batches:
            task.add(batch)
        rows = [part.model_dump() | {"etags": json.dumps(part.etags)} for part in task.finish()]
        if rows:
            yield pa.RecordBatch.from_pylist(rows)


@dataclass
class _Task:
    """The open files of one task, one a directory."""

    writer: PartWriter
    number: int
    open: dict[str, _Part] = field(default_factory=dict)
    staged: list[StagedPart] = field(default_factory=list)
    count: int = 0

    @cached_property
    def s3(self) -> S3Client:
        return client()

    def add(self, batch: pa.RecordBatch) -> None:
        directories = batch.column(0).to_pylist()
        lines = batch.column(1).to_pylist()
        hashes = batch.column(2).to_pylist()
        for directory, line, digest in zip(directories, lines, hashes, strict=True):
            part = self.open.get(directory) or self._begin(directory)
            part.add(line, digest)
            if part.size >= self.writer.roll_bytes:
                self.staged.append(self.open.pop(directory).finish())

    def finish(self) -> list[StagedPart]:
        self.staged.extend(part.finish() for part in self.open.values())
        return self.staged

    def _begin(self, directory: str) -> _Part:
        name = f"{self.writer.stem}-{self.number:03d}-{self.count:03d}{self.writer.suffix}"
        self.count += 1
        key = "/".join(part for part in (self.writer.folder, directory, name) if part)
        self.open[directory] = _Part(self.s3, self.writer.bucket, key)
        return self.open[directory]


class _Part:
    """One multipart upload, begun with its first piece."""

    def __init__(self, s3: S3Client, bucket: str, key: str) -> None:
        self._s3 = s3
        self._bucket = bucket
        self._key = key
        self._token = uuid.uuid4().hex
        self._upload = s3.create_multipart_upload(
            Bucket=bucket, Key=key, ContentType="application/x-ndjson", Metadata={TOKEN: self._token}
        )["UploadId"]
        self._etags: list[str] = []
        self._piece = bytearray()
        self._rows = 0
        self._digest = 0
        self.size = 0

    def add(self, line: str, digest: int) -> None:
        data = line.encode()
        self._piece += data
        self._piece += b"\n"
        self.size += len(data) + 1
        self._rows += 1
        self._digest += digest
        if len(self._piece) >= PIECE_BYTES:
            self._send()

    def finish(self) -> StagedPart:
        if self._piece:
            self._send()
        return StagedPart(
            key=self._key,
            upload_id=self._upload,
            token=self._token,
            etags=tuple(self._etags),
            rows=self._rows,
            bytes=self.size,
            digest=wrapped(self._digest),
        )

    def _send(self) -> None:
        answer = self._s3.upload_part(
            Bucket=self._bucket, Key=self._key, UploadId=self._upload, PartNumber=len(self._etags) + 1, Body=bytes(self._piece)
        )
        self._etags.append(answer["ETag"])
        self._piece.clear()


def wrapped(total: int) -> int:
    """A number modulo 2^64 as a signed 64-bit integer."""
    return (total + 2**63) % 2**64 - 2**63
