"""Publishes the part files of a manifest: whole, once, and never over an existing file.

A file comes from exactly one multipart upload, whose id is in the manifest. S3 completes an upload at most once, so a file can't appear
a second time, whoever completes it, and whether or not a reader has moved it away by then.
"""

from __future__ import annotations

import io
import re
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from penstock.jobs.sinks.errors import StagedPartGone
from penstock.jobs.sinks.open_parts import Chunk, OpenPart
from penstock.jobs.sinks.part_formats import CONTENT_TYPES, LINES, ROW_GROUP_BYTES, Parquet
from penstock.jobs.sinks.part_log import ComposedPart
from penstock.jobs.sinks.parts import TOKEN, StagedPart, Upload
from penstock.jobs.storage.errors import ConditionalWriteFailed
from penstock.jobs.storage.s3 import error_code, missing, shared_client

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_AT_A_TIME = 8
# Source: Amazon S3 User Guide, "Amazon S3 multipart upload limits".
_SMALLEST_PART_BYTES = 5 * 1024 * 1024
_GONE = ("404", "NoSuchKey", "NoSuchUpload")
_TAKEN = ("PreconditionFailed", "412")
# Another request for the same key is in progress. The API reference of CompleteMultipartUpload then asks for a new upload, because the
# other one may be anyone's; here it is the completion of the same upload by another driver of the same manifest, which decides it for both.
_CONFLICT = ("ConditionalRequestConflict", "409")
_PAUSES_S = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2)


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

    def publish(self, staged: Iterable[StagedPart], composed: Iterable[ComposedPart] = ()) -> None:
        """Completes uploads, unless they are completed.

        Args:
            staged: the uploads.
            composed: files of a manifest that an earlier version wrote, which are composed only now.

        Raises:
            StagedPartGone: JOB-006.
            ConditionalWriteFailed: JOB-082, S3 answers only with conflicts.
        """
        with ThreadPoolExecutor(_AT_A_TIME) as pool:
            done = [*(pool.submit(self.complete, part) for part in staged), *(pool.submit(self._compose_late, part) for part in composed)]
            for future in done:
                future.result()

    def complete(self, part: StagedPart) -> None:
        """Completes an upload, unless an earlier attempt has."""
        try:
            self._complete(part)
        except ClientError as error:
            if error_code(error) not in (*_GONE, *_TAKEN):
                raise
            self._require_published(part.key, part.token, f"the upload {part.upload_id} still open, or completed")

    def compose(self, files: Sequence[tuple[str, OpenPart]]) -> tuple[StagedPart, ...]:
        """Composes files from chunks, as uploads that are left open.

        Args:
            files: key of the object and its part, for each file.

        Raises:
            StagedPartGone: JOB-006, a chunk does not exist, or another driver has aborted the upload.
        """
        with ThreadPoolExecutor(_AT_A_TIME) as pool:
            return tuple(pool.map(lambda file: self._composed(*file), files))

    def abort(self, folder: str, stem: str, batch: int, decision: int, kept: Iterable[str]) -> None:
        """Deletes the uploads that failed attempts have left, up to a decision.

        Those of later micro-batches and decisions are not touched: a driver that was considered dead must not abort the uploads of its
        successor.

        Args:
            folder: folder of the files, without a trailing slash.
            stem: prefix of the file names, up to the number of the micro-batch.
            batch: number of the decision's micro-batch.
            decision: number of the decision.
            kept: ids of uploads to keep.
        """
        spared = set(kept)
        name = re.compile(rf"{re.escape(stem)}([0-9]+)-(?:c([0-9]+)-)?")
        pages = self._s3.get_paginator("list_multipart_uploads").paginate(Bucket=self.bucket, Prefix=f"{folder}/")
        for upload in (upload for page in pages for upload in page.get("Uploads", [])):
            found = name.match(upload["Key"].rsplit("/", 1)[-1])
            if found and int(found[1]) <= batch and int(found[2] or 0) <= decision and upload["UploadId"] not in spared:
                self._end(upload["Key"], upload["UploadId"])

    def discard(self, parts: Iterable[StagedPart]) -> None:
        """Aborts uploads that are in no manifest."""
        for part in parts:
            self._end(part.key, part.upload_id)

    def _end(self, key: str, upload_id: str) -> None:
        try:
            self._s3.abort_multipart_upload(Bucket=self.bucket, Key=key, UploadId=upload_id)
        except ClientError as error:
            # Another driver of the same checkpoint has deleted it first.
            if error_code(error) != "NoSuchUpload":
                raise

    def sweep(self, batch: int, kept: Iterable[str], *, earlier: bool = False) -> None:
        """Deletes the chunks of a micro-batch, except those to keep.

        Args:
            batch: number of the micro-batch.
            kept: names of the chunks to keep.
            earlier: whether to delete those of earlier micro-batches too, which tasks may write after they were considered dead.
        """
        spared = set(kept)
        stem = "" if earlier else f"{batch:08d}-"
        pages = self._s3.get_paginator("list_objects_v2").paginate(Bucket=self.chunks_bucket, Prefix=f"{self.chunks_folder}{stem}")
        names = [item["Key"].removeprefix(self.chunks_folder) for page in pages for item in page.get("Contents", [])]
        self.forget(name for name in names if name not in spared and int(name.partition("-")[0]) <= batch)

    def forget(self, names: Iterable[str]) -> None:
        """Deletes chunks, which need not exist."""
        for name in names:
            self._s3.delete_object(Bucket=self.chunks_bucket, Key=f"{self.chunks_folder}{name}")

    @cached_property
    def _s3(self) -> S3Client:
        return shared_client()

    def _composed(self, key: str, part: OpenPart | ComposedPart, token: str | None = None) -> StagedPart:
        try:
            upload = Upload(self._s3, self.bucket, key, CONTENT_TYPES[part.shape.partition(":")[0]], token or uuid.uuid4().hex)
            if part.shape == LINES:
                self._add_lines(upload, part.chunks)
            else:
                self._add_columns(upload, part.chunks)
            ended = upload.finish()
        except ClientError as error:
            if error_code(error) not in _GONE:
                raise
            raise self._gone(key, f"its chunks in {self.chunks_folder}") from None
        rows, size = sum(chunk.rows for chunk in part.chunks), sum(chunk.bytes for chunk in part.chunks)
        return StagedPart(
            key=key, upload_id=upload.id, token=str(ended["token"]), etags=tuple(upload.etags), rows=rows, bytes=size, digest=0
        )

    def _compose_late(self, part: ComposedPart) -> None:
        if self._token(part.key) != part.token:
            staged = self._composed(part.key, part, part.token)
            self.complete(staged)

    def _add_lines(self, upload: Upload, chunks: Sequence[Chunk]) -> None:
        """The order of lines does not matter: large chunks are copied by S3 itself, the small ones are read and appended."""
        for chunk in chunks:
            if chunk.bytes >= _SMALLEST_PART_BYTES:
                with self._of(chunk, upload.key):
                    upload.copy(self.chunks_bucket, f"{self.chunks_folder}{chunk.name}")
        for chunk in chunks:
            if chunk.bytes < _SMALLEST_PART_BYTES:
                upload.write(self._read(chunk, upload.key))

    def _add_columns(self, upload: Upload, chunks: Sequence[Chunk]) -> None:
        import pyarrow.parquet as pq

        file = Parquet(upload, ROW_GROUP_BYTES)
        for chunk in chunks:
            for batch in pq.ParquetFile(io.BytesIO(self._read(chunk, upload.key))).iter_batches():
                file.add(batch)
        file.finish()

    def _complete(self, part: StagedPart) -> None:
        uploaded = [{"ETag": etag, "PartNumber": number} for number, etag in enumerate(part.etags, start=1)]
        for pause_s in (*_PAUSES_S, None):
            try:
                self._s3.complete_multipart_upload(
                    Bucket=self.bucket,
                    Key=part.key,
                    UploadId=part.upload_id,
                    MultipartUpload={"Parts": uploaded},  # type: ignore[typeddict-item]
                    IfNoneMatch="*",
                )
                return
            except ClientError as error:
                if error_code(error) not in _CONFLICT:
                    raise
                if pause_s is None:
                    raise self._undecided(part.key) from error
                time.sleep(pause_s)

    def _undecided(self, key: str) -> ConditionalWriteFailed:
        need, fix = "an answer other than a conflict", "restart the job: it goes on with this file"
        return ConditionalWriteFailed(path=f"s3://{self.bucket}/{key}", given=f"{1 + len(_PAUSES_S)} conflicts", need=need, fix=fix)

    def _read(self, chunk: Chunk, key: str) -> bytes:
        with self._of(chunk, key):
            return self._s3.get_object(Bucket=self.chunks_bucket, Key=f"{self.chunks_folder}{chunk.name}")["Body"].read()

    @contextmanager
    def _of(self, chunk: Chunk, key: str) -> Iterator[None]:
        """Raises JOB-006 for a chunk of an object that does not exist, in whatever way S3 says so."""
        try:
            yield
        except ClientError as error:
            name = f"{self.chunks_folder}{chunk.name}"
            if missing(self._s3, self.chunks_bucket, name, error):
                raise self._gone(key, name) from None
            raise

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
            raise self._gone(key, need)

    def _gone(self, key: str, need: str) -> StagedPartGone:
        fix = (
            "give the job a new metadata.name and start before the lost rows, which writes published ones again; let the bucket's "
            "lifecycle rule keep incomplete multipart uploads longer than the longest downtime"
        )
        return StagedPartGone(path=f"s3a://{self.bucket}/{key}", need=need, fix=fix)
