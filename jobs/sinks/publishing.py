"""Publishes the part files of a manifest: whole, once, and never over an existing file."""

from __future__ import annotations

import io
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from penstock.jobs.errors import StagedPartGone
from penstock.jobs.sinks.open_parts import Chunk
from penstock.jobs.sinks.part_formats import CONTENT_TYPES, LINES, ROW_GROUP_BYTES, Parquet
from penstock.jobs.sinks.part_log import ComposedPart
from penstock.jobs.sinks.parts import PART_BYTES, TOKEN, StagedPart, Upload
from penstock.jobs.storage.s3 import client, error_code

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_AT_A_TIME = 8
# Source: Amazon S3 User Guide, "Amazon S3 multipart upload limits".
_SMALLEST_PART_BYTES = 5 * 1024 * 1024
_GONE = ("404", "NoSuchKey", "NoSuchUpload")
_TAKEN = ("PreconditionFailed", "ConditionalRequestConflict", "412", "409")


@dataclass(frozen=True)
class Publisher:
    """Publisher of the files of one sink.

    Args:
        bucket: bucket of the files.
        chunks_bucket: bucket of the chunks.
        chunks_folder: folder of the chunks, with a trailing slash.
    """

    bucket: str
    chunks_bucket: str
    chunks_folder: str

    def publish(self, staged: Iterable[StagedPart], composed: Iterable[ComposedPart]) -> None:
        """Completes uploads and composes files from chunks, unless they exist.

        Raises:
            StagedPartGone: JOB-006.
        """
        with ThreadPoolExecutor(_AT_A_TIME) as pool:
            done = [*(pool.submit(self.complete, part) for part in staged), *(pool.submit(self.compose, part) for part in composed)]
            for future in done:
                future.result()

    def complete(self, part: StagedPart) -> None:
        """Completes an upload, unless an earlier attempt has."""
        try:
            self._complete(part.key, part.upload_id, part.etags)
        except ClientError as error:
            if error_code(error) not in (*_GONE, *_TAKEN):
                raise
            self._require_published(part.key, part.token, f"the upload {part.upload_id} still open, or completed")

    def compose(self, part: ComposedPart) -> None:
        """Composes a file, unless an earlier attempt has."""
        if self._token(part.key) == part.token:
            return
        try:
            if part.shape == LINES:
                self._compose_lines(part)
            else:
                self._compose_columns(part)
        except ClientError as error:
            if error_code(error) not in (*_GONE, *_TAKEN):
                raise
            self._require_published(part.key, part.token, f"its chunks in {self.chunks_folder}, or the file itself")

    def abort(self, prefix: str, kept: Iterable[str], stem: str) -> None:
        """Deletes what failed attempts have left.

        Args:
            prefix: prefix of the keys.
            kept: ids of uploads to keep.
            stem: prefix of the file names.
        """
        spared = set(kept)
        pages = self._s3.get_paginator("list_multipart_uploads").paginate(Bucket=self.bucket, Prefix=prefix)
        for upload in (upload for page in pages for upload in page.get("Uploads", [])):
            if upload["Key"].rsplit("/", 1)[-1].startswith(stem) and upload["UploadId"] not in spared:
                self._end(upload["Key"], upload["UploadId"])

    def _end(self, key: str, upload_id: str) -> None:
        try:
            self._s3.abort_multipart_upload(Bucket=self.bucket, Key=key, UploadId=upload_id)
        except ClientError as error:
            # Another driver of the same checkpoint has deleted it first.
            if error_code(error) != "NoSuchUpload":
                raise

    def sweep(self, stem: str, kept: Iterable[str]) -> None:
        """Deletes the chunks whose names begin with a stem, except those to keep."""
        spared = set(kept)
        pages = self._s3.get_paginator("list_objects_v2").paginate(Bucket=self.chunks_bucket, Prefix=f"{self.chunks_folder}{stem}")
        names = [item["Key"].removeprefix(self.chunks_folder) for page in pages for item in page.get("Contents", [])]
        self.forget(name for name in names if name not in spared)

    def forget(self, names: Iterable[str]) -> None:
        """Deletes chunks, which need not exist."""
        for name in names:
            self._s3.delete_object(Bucket=self.chunks_bucket, Key=f"{self.chunks_folder}{name}")

    @cached_property
    def _s3(self) -> S3Client:
        return client()

    def _compose_lines(self, part: ComposedPart) -> None:
        """The order of lines does not matter: large chunks are copied by S3 itself, the small ones are read and appended."""
        large = [chunk for chunk in part.chunks if chunk.bytes >= _SMALLEST_PART_BYTES]
        small = [chunk for chunk in part.chunks if chunk.bytes < _SMALLEST_PART_BYTES]
        if not large and sum(chunk.bytes for chunk in small) < PART_BYTES:
            body = b"".join(self._read(chunk) for chunk in small)
            content = CONTENT_TYPES[LINES]
            self._s3.put_object(
                Bucket=self.bucket, Key=part.key, Body=body, ContentType=content, Metadata={TOKEN: part.token}, IfNoneMatch="*"
            )
            return
        upload = self._upload(part)
        for chunk in large:
            upload.copy(self.chunks_bucket, f"{self.chunks_folder}{chunk.name}")
        for chunk in small:
            upload.write(self._read(chunk))
        self._finish(part, upload)

    def _compose_columns(self, part: ComposedPart) -> None:
        import pyarrow.parquet as pq

        upload = self._upload(part)
        file = Parquet(upload, ROW_GROUP_BYTES)
        for chunk in part.chunks:
            for batch in pq.ParquetFile(io.BytesIO(self._read(chunk))).iter_batches():
                file.add(batch)
        file.finish()
        self._finish(part, upload)

    def _upload(self, part: ComposedPart) -> Upload:
        return Upload(self._s3, self.bucket, part.key, CONTENT_TYPES[part.shape.partition(":")[0]], part.token)

    def _finish(self, part: ComposedPart, upload: Upload) -> None:
        upload.finish()
        self._complete(part.key, upload.id, upload.etags)

    def _complete(self, key: str, upload_id: str, etags: Iterable[str]) -> None:
        uploaded = [{"ETag": etag, "PartNumber": number} for number, etag in enumerate(etags, start=1)]
        self._s3.complete_multipart_upload(
            Bucket=self.bucket,
            Key=key,
            UploadId=upload_id,
            MultipartUpload={"Parts": uploaded},  # type: ignore[typeddict-item]
            IfNoneMatch="*",
        )

    def _read(self, chunk: Chunk) -> bytes:
        return self._s3.get_object(Bucket=self.chunks_bucket, Key=f"{self.chunks_folder}{chunk.name}")["Body"].read()

    def _token(self, key: str) -> str | None:
        """Token of an object; None if it does not exist, which a job with the permission to list can find out only by LIST: HEAD would
        be denied.
        """
        listed = self._s3.list_objects_v2(Bucket=self.bucket, Prefix=key, MaxKeys=1).get("Contents", [])
        if not any(item["Key"] == key for item in listed):
            return None
        return self._s3.head_object(Bucket=self.bucket, Key=key)["Metadata"].get(TOKEN)

    def _require_published(self, key: str, token: str, need: str) -> None:
        """An object that can no longer be created must have been created by an earlier attempt, which its token proves."""
        if self._token(key) != token:
            fix = (
                "give the job a new metadata.name and start before the lost rows, which writes published ones again; let the bucket's "
                "lifecycle rule keep incomplete multipart uploads longer than the longest downtime"
            )
            raise StagedPartGone(path=f"s3a://{self.bucket}/{key}", need=need, fix=fix)
