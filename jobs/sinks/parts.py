"""Writers of the tasks: files as multipart uploads, not visible until completed, or chunks of files that stay open."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from pydantic import BaseModel, ConfigDict

from penstock.jobs.sinks.part_formats import CONTENT_TYPES, LINES, JsonLines, Parquet
from penstock.jobs.storage.s3 import shared_client

if TYPE_CHECKING:
    import pyarrow as pa
    from mypy_boto3_s3 import S3Client

# Parts of a multipart upload have at least 5 MiB, except the last one, and an upload has at most 10,000 of them (Amazon S3 User Guide,
# "Amazon S3 multipart upload limits").
PART_BYTES = 8 * 1024 * 1024
TOKEN = "penstock-part"
STAGED_SCHEMA = "directory string, key string, upload_id string, token string, etags string, rows long, bytes long, digest long"


class StagedPart(BaseModel):
    """A part file whose upload is not completed yet.

    Args:
        key: key of the object in the bucket.
        upload_id: id of the multipart upload.
        token: metadata of the object that identifies it once it is published.
        etags: tags of the upload's parts, in their order.
        rows: number of rows in the file.
        bytes: size of the file.
        digest: sum of the rows' hashes modulo 2^64, as a signed number, independent of the rows' order.
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
    """Parameters of a task that writes part files; sent to the tasks.

    Args:
        bucket: name of the bucket.
        folder: folder of the files, without leading and trailing slashes.
        stem: prefix of the file names, including the number of the micro-batch.
        suffix: suffix of the file names.
        format: ``json`` or ``parquet``.
        roll_bytes: size at which a file is closed.
        chunks: whether to write chunks, one object each, directly below the folder.
    """

    bucket: str
    folder: str
    stem: str
    suffix: str
    format: str
    roll_bytes: int
    chunks: bool = False

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Writes rows and yields what was written, in the form of `STAGED_SCHEMA`; a chunk has no upload.

        Args:
            batches: columns ``_directory`` (text, may be empty) and ``_hash`` (long), then ``_line`` (text) for JSON, or the fields.
        """
        import pyarrow as pa
        from pyspark import TaskContext

        context = TaskContext.get()
        task = _Task(self, context.partitionId() if context else 0)
        for batch in batches:
            task.add(batch)
        rows = task.finish()
        if rows:
            yield pa.RecordBatch.from_pylist(rows)


class Target(Protocol):
    """Target for the bytes of one file."""

    size: int

    def write(self, data: bytes) -> None:
        """Appends bytes."""

    def finish(self) -> dict[str, object]:
        """Ends the file and returns its description."""


@dataclass
class _Task:
    """The open files of one task, one per directory."""

    writer: PartWriter
    number: int
    open: dict[str, _File] = field(default_factory=dict)
    staged: list[dict[str, object]] = field(default_factory=list)
    count: int = 0

    @cached_property
    def s3(self) -> S3Client:
        return shared_client()

    def add(self, batch: pa.RecordBatch) -> None:
        if self.writer.format == LINES:
            self._add_lines(batch)
        else:
            self._add_columns(batch)

    def _add_lines(self, batch: pa.RecordBatch) -> None:
        columns = (batch.column(name).to_pylist() for name in ("_directory", "_line", "_hash"))
        for directory, line, digest in zip(*columns, strict=True):
            self._file(directory).encoder.add(line)
            self._added(directory, 1, digest)

    def _add_columns(self, batch: pa.RecordBatch) -> None:
        import pyarrow.compute as pc

        directories = batch.column("_directory")
        for directory in directories.unique().to_pylist():
            rows = batch.filter(pc.equal(directories, directory))
            file = self._file(directory)
            file.encoder.add(rows.drop_columns(["_directory", "_hash"]))
            self._added(directory, rows.num_rows, sum(rows.column("_hash").to_pylist()))

    def _added(self, directory: str, rows: int, digest: int) -> None:
        file = self.open[directory]
        file.rows += rows
        file.digest += digest
        if file.target.size >= self.writer.roll_bytes:
            self.staged.append(self.open.pop(directory).finish())

    def finish(self) -> list[dict[str, object]]:
        self.staged.extend(file.finish() for file in self.open.values())
        return self.staged

    def _file(self, directory: str) -> _File:
        if directory not in self.open:
            target = self._chunk() if self.writer.chunks else self._upload(directory)
            encoder = JsonLines(target) if self.writer.format == LINES else Parquet(target, self.writer.roll_bytes)
            self.open[directory] = _File(directory, target, encoder)
        return self.open[directory]

    def _upload(self, directory: str) -> Upload:
        name = f"{self.writer.stem}-{self.number:03d}-{self.count:03d}{self.writer.suffix}"
        self.count += 1
        key = "/".join(part for part in (self.writer.folder, directory, name) if part)
        return Upload(self.s3, self.writer.bucket, key, CONTENT_TYPES[self.writer.format], uuid.uuid4().hex)

    def _chunk(self) -> _Object:
        # A task that runs again must not overwrite what another attempt has reported.
        name = f"{self.writer.stem}-{self.number:03d}-{self.count:03d}-{uuid.uuid4().hex[:8]}{self.writer.suffix}"
        self.count += 1
        return _Object(self.s3, self.writer.bucket, f"{self.writer.folder}/{name}")


@dataclass
class _File:
    """One file being written."""

    directory: str
    target: Target
    encoder: Any
    rows: int = 0
    digest: int = 0

    def finish(self) -> dict[str, object]:
        self.encoder.finish()
        target = self.target.finish()
        return {"directory": self.directory, **target, "rows": self.rows, "bytes": self.target.size, "digest": wrapped(self.digest)}


class Upload:
    """One multipart upload, left open when it is finished.

    Args:
        s3: S3 client.
        bucket: name of the bucket.
        key: key of the object.
        content_type: content type of the object.
        token: metadata of the object.

    Attributes:
        id: id of the upload.
        etags: tags of its parts, in their order.
        size: size in bytes, without copied objects.
    """

    def __init__(self, s3: S3Client, bucket: str, key: str, content_type: str, token: str) -> None:
        self._s3 = s3
        self._bucket = bucket
        self.key = key
        self._token = token
        self.id = s3.create_multipart_upload(Bucket=bucket, Key=key, ContentType=content_type, Metadata={TOKEN: token})["UploadId"]
        self.etags: list[str] = []
        self._buffer = bytearray()
        self.size = 0

    def write(self, data: bytes) -> None:
        """Appends bytes."""
        self._buffer += data
        self.size += len(data)
        if len(self._buffer) >= PART_BYTES:
            self._send()

    def copy(self, bucket: str, key: str) -> None:
        """Appends another object of at least 5 MiB without reading it. Bytes written before are placed after it."""
        answer = self._s3.upload_part_copy(
            Bucket=self._bucket,
            Key=self.key,
            UploadId=self.id,
            PartNumber=len(self.etags) + 1,
            CopySource={"Bucket": bucket, "Key": key},
        )
        self.etags.append(answer["CopyPartResult"]["ETag"])

    def finish(self) -> dict[str, object]:
        """Uploads the remaining bytes; returns key, upload, token and tags."""
        if self._buffer:
            self._send()
        return {"key": self.key, "upload_id": self.id, "token": self._token, "etags": json.dumps(self.etags)}

    def _send(self) -> None:
        answer = self._s3.upload_part(
            Bucket=self._bucket, Key=self.key, UploadId=self.id, PartNumber=len(self.etags) + 1, Body=bytes(self._buffer)
        )
        self.etags.append(answer["ETag"])
        self._buffer.clear()


class _Object:
    """One object, put when it is finished."""

    def __init__(self, s3: S3Client, bucket: str, key: str) -> None:
        self._s3 = s3
        self._bucket = bucket
        self.key = key
        self._body = bytearray()
        self.size = 0

    def write(self, data: bytes) -> None:
        self._body += data
        self.size += len(data)

    def finish(self) -> dict[str, object]:
        self._s3.put_object(Bucket=self._bucket, Key=self.key, Body=bytes(self._body))
        return {"key": self.key.rsplit("/", 1)[-1], "upload_id": "", "token": "", "etags": "[]"}


def wrapped(total: int) -> int:
    """A number modulo 2^64 as a signed 64-bit integer."""
    return (total + 2**63) % 2**64 - 2**63
