"""Files on S3 that any reader can trust: JSON lines, each file whole or not there, each row exactly once.

How a micro-batch gets there:

1. Tasks write its rows as multipart uploads and leave them open. Nobody sees them.
2. The driver writes a manifest that names the uploads, once and only if there is none for that micro-batch (``If-None-Match: *``). From
   here on the micro-batch's files are decided.
3. The driver completes the uploads; each file appears whole.

After a crash Spark runs the micro-batch again. Without a manifest nothing of it was ever seen: what was staged is aborted and the rows are
written anew. With one, nothing is written: the uploads that are still open are completed. A second driver that lost its lease finds the
manifest taken and publishes nothing of its own.

Guarantee: exactly once for any reader, at any time, a crash included, file by file: a reader may see some of a micro-batch's files shortly
before the others. A replay has to give the same rows (held by a digest, else JOB-007). Cost: three requests and one PUT of a manifest more
than a plain PUT a file, and output is seen when its micro-batch ends.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError
from pydantic import BaseModel, ConfigDict
from pyspark.errors import PythonException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from jobs.checkpoint import RETAINED_BATCHES, Checkpoint
from jobs.errors import BucketUnreachable, ReplayDiffers, StagedPartGone
from jobs.s3 import client, error_code
from jobs.sinks.parts import STAGED_SCHEMA, TOKEN, PartWriter, StagedPart, wrapped
from jobs.spec import FileSink
from jobs.streams import ENVELOPE, TIME

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

# A task writes some 200,000 rows a second; fewer rows than this are not worth a file more.
ROWS_A_TASK = 100_000
_COMPLETIONS_AT_A_TIME = 8


class Manifest(BaseModel):
    """A micro-batch's files, decided once.

    Args:
        batch: Spark's number of the micro-batch.
        rows: rows in all of its files.
        digest: sum of the rows' hashes modulo 2^64, as a signed number.
        parts: the uploads.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    batch: int
    rows: int
    digest: int
    parts: tuple[StagedPart, ...]


@dataclass(frozen=True)
class Files:
    """The sink of one query.

    Args:
        name: of the sink in the spec.
        sink: as the spec has it.
        bucket: the environment's output bucket.
        query: what tells this query's files from those of an earlier one without the same checkpoint; part of the files' names.
        checkpoint: where the manifests lie.
    """

    name: str
    sink: FileSink
    bucket: str
    query: str
    checkpoint: Checkpoint

    def write(self, rows: DataFrame, batch: int, count: int) -> Manifest:
        """Publishes the rows of a micro-batch.

        Args:
            rows: data rows with their event time.
            batch: Spark's number of the micro-batch.
            count: how many rows there are.

        Returns:
            The manifest, this run's or that of an earlier try.

        Raises:
            ReplayDiffers: JOB-007.
            StagedPartGone: JOB-006.
            BucketUnreachable: JOB-009.
        """
        lines = self._lines(rows)
        earlier = self.checkpoint.get(self._manifest_name(batch))
        try:
            manifest = self._same(Manifest.model_validate_json(earlier), lines) if earlier else self._stage(lines, batch, count)
            self._publish(manifest.parts)
            self._abort(batch, keep=manifest.parts)
        except (ClientError, BotoCoreError, PythonException) as error:
            told = _told_by_s3(error)
            if told is None:
                raise
            fix = "check the bucket's name and the job's rights"
            raise BucketUnreachable(path=f"s3a://{self.bucket}/{self.sink.path}", given=told, fix=fix) from error
        self.checkpoint.delete(self._manifest_name(batch - RETAINED_BATCHES))
        return manifest

    @cached_property
    def _s3(self) -> S3Client:
        return client()

    def _lines(self, rows: DataFrame) -> DataFrame:
        fields = [name for name in rows.columns if name not in ENVELOPE]
        lines = rows.select(self._directory().alias("directory"), F.to_json(F.struct(*fields), {"ignoreNullFields": "false"}).alias("line"))
        return lines.select("directory", "line", F.xxhash64("directory", "line").alias("hash"))

    def _directory(self) -> Column:
        if self.sink.bucket_by == "none":
            return F.lit("")
        # The session's zone is UTC (jobs/session.py), which is what this function takes for granted.
        local = F.from_utc_timestamp(TIME, self.sink.zone)
        return F.concat(F.lit("dt="), F.date_format(local, "yyyy-MM-dd"))

    def _stage(self, lines: DataFrame, batch: int, count: int) -> Manifest:
        """Writes the rows as open uploads and decides for them, or for those of whoever was quicker.

        Nothing of another try is aborted before the manifest is there: a driver that was only slow could still decide for it.
        """
        stem = f"{self.sink.prefix}{self._stem(batch)}"
        writer = PartWriter(self.bucket, self.sink.path, stem, f".{self.sink.format}", self.sink.roll.size)
        tasks = max(1, math.ceil(count / ROWS_A_TASK))
        staged = [_staged(row.asDict()) for row in lines.coalesce(tasks).mapInArrow(writer, STAGED_SCHEMA).collect()] if count else []
        rows, digest = sum(part.rows for part in staged), wrapped(sum(part.digest for part in staged))
        manifest = Manifest(batch=batch, rows=rows, digest=digest, parts=tuple(staged))
        if self.checkpoint.put_once(self._manifest_name(batch), manifest.model_dump_json()):
            return manifest
        text = self.checkpoint.get(self._manifest_name(batch))
        assert text is not None
        return self._same(Manifest.model_validate_json(text), lines)

    def _same(self, manifest: Manifest, lines: DataFrame) -> Manifest:
        """The manifest of an earlier try, if the replay's rows are those that it stands for."""
        found = lines.agg(F.count("*").alias("rows"), F.sum(F.col("hash").cast("decimal(38,0)")).alias("digest")).first()
        assert found is not None
        rows, digest = int(found["rows"]), wrapped(int(found["digest"] or 0))
        if (rows, digest) != (manifest.rows, manifest.digest):
            need = f"the {manifest.rows} rows of the first try (digest {manifest.digest}); the replay has {rows} (digest {digest})"
            fix = "take random, clock and unordered calls out of the query, or write what they give before it is used"
            raise ReplayDiffers(path=f"sink {self.name}, batch {manifest.batch}", need=need, fix=fix)
        return manifest

    def _publish(self, parts: Iterable[StagedPart]) -> None:
        with ThreadPoolExecutor(_COMPLETIONS_AT_A_TIME) as pool:
            list(pool.map(self._complete, parts))

    def _complete(self, part: StagedPart) -> None:
        pieces = [{"ETag": etag, "PartNumber": number} for number, etag in enumerate(part.etags, start=1)]
        try:
            self._s3.complete_multipart_upload(
                Bucket=self.bucket,
                Key=part.key,
                UploadId=part.upload_id,
                MultipartUpload={"Parts": pieces},  # type: ignore[typeddict-item]
            )
        except ClientError as error:
            if error_code(error) != "NoSuchUpload":
                raise
            self._must_be_published(part)

    def _must_be_published(self, part: StagedPart) -> None:
        """An upload that is no longer open was completed by an earlier try, which the object's token proves."""
        try:
            token = self._s3.head_object(Bucket=self.bucket, Key=part.key)["Metadata"].get(TOKEN)
        except ClientError as error:
            if error_code(error) not in ("404", "NoSuchKey"):
                raise
            token = None
        if token != part.token:
            need = f"the upload {part.upload_id} still open, or completed"
            fix = "raise the bucket's days for unfinished uploads above the longest stop of a job; the rows can be had by a rewind"
            raise StagedPartGone(path=f"s3a://{self.bucket}/{part.key}", need=need, fix=fix)

    def _abort(self, batch: int, keep: Iterable[StagedPart]) -> None:
        """Takes away what tries that came to nothing have left of this micro-batch."""
        kept = {part.upload_id for part in keep}
        pages = self._s3.get_paginator("list_multipart_uploads").paginate(Bucket=self.bucket, Prefix=f"{self.sink.path}/")
        for upload in (upload for page in pages for upload in page.get("Uploads", [])):
            ours = f"{self.sink.prefix}{self._stem(batch)}-" in upload["Key"].rsplit("/", 1)[-1]
            if ours and upload["UploadId"] not in kept:
                self._s3.abort_multipart_upload(Bucket=self.bucket, Key=upload["Key"], UploadId=upload["UploadId"])

    def _stem(self, batch: int) -> str:
        return f"{self.query}-{batch:08d}"

    def _manifest_name(self, batch: int) -> str:
        return f"sinks/{self.name}/{batch}.json"


def _told_by_s3(error: Exception) -> str | None:
    """What S3 or its client said; a task's error comes as the text of its traceback. None where a task failed for another reason."""
    if not isinstance(error, PythonException):
        return str(error)
    lines = [line.strip() for line in str(error).splitlines()]
    return next((line.partition(": ")[2] for line in reversed(lines) if line.startswith("botocore.")), None)


def _staged(row: dict[str, object]) -> StagedPart:
    return StagedPart.model_validate(row | {"etags": tuple(json.loads(str(row["etags"])))})
