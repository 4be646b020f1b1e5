"""Files on S3 as sinks, JSON lines or Parquet: each file appears whole, each row exactly once.

How rows are written:

1. Tasks stage the rows of a micro-batch where readers do not see them: as chunks in the checkpoint's folder or, if files do not stay
   open beyond their micro-batch (a roll interval shorter than it), as multipart uploads of whole files that are left open.
2. The driver composes each part file that is closed now from its chunks, as an upload that is left open; large chunks are copied by S3
   itself.
3. The driver writes a manifest, once and only if none has its number (``If-None-Match: *``): the uploads that are completed now, and the
   chunks of the part files that stay open. From then on both are decided. Between micro-batches the driver decides in the same way to
   close part files that have reached the roll interval or inactivity interval.
4. The driver publishes the files of the manifest: it completes their uploads. Each file appears whole, and never overwrites an existing
   one. S3 completes an upload once, so no file appears again after a reader has moved it.
5. The driver marks the manifest as published, deletes the chunks of its files, and aborts the uploads of other attempts at it.

After a crash the driver publishes the missing files of the last manifest, unless it is marked as published, and Spark runs its
micro-batch again. If the manifest includes that micro-batch, nothing is written. Otherwise none of its rows were visible: the staged
ones are deleted and written anew.

A driver that was considered dead and goes on, at whichever of these requests, changes nothing that counts:

- staging, composing: its uploads and chunks have names of their own and are in no manifest. A chunk that it needs may be deleted by then,
  and its upload aborted: it reads the log again.
- manifest: the number exists. If it existed so long ago that it has expired, the log has later entries: the driver lists them after each
  manifest that it writes.
- completion: the upload is completed, by itself or by its successor, or it is aborted.
- mark: of a manifest that is published; the marks that it deletes are those of earlier manifests.
- deletions: of chunks that the files of its manifest were composed of, or of its micro-batch and in no manifest; of uploads of its
  manifest and earlier ones that are in none. Names of chunks and uploads have the number of the micro-batch, and those of composed files
  the number of the manifest, so that none of a later decision is touched.

Guarantee: exactly once for any reader, at any time, crashes included, file by file: a reader may see some files of a micro-batch shortly
before the others. A replay must produce the same rows (verified by a digest, else JOB-007). Cost: rows become visible when their file is
closed, by size, interval or inactivity, or when the job ends; a micro-batch takes a PUT for each directory and task, one for its
manifest, and two LISTs; if files are published, a third LIST, a PUT for the mark, and for each file its creation, an upload of each 8
MiB, and its completion; bytes are stored twice until their file is closed. Parquet chunks pass through the driver once more, lines only
if a chunk is smaller than 5 MiB. One file of a directory is open at a time, so the size of a
file is between the roll size and 8 MiB above it.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

from botocore.exceptions import BotoCoreError, ClientError
from pyspark.errors import PythonException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.jobs.errors import BadDeclaration
from penstock.jobs.sinks.errors import ReplayDiffers, StagedPartGone
from penstock.jobs.sinks.open_parts import Chunk, OpenPart, extended
from penstock.jobs.sinks.part_formats import LINES
from penstock.jobs.sinks.part_log import Manifest, PartLog
from penstock.jobs.sinks.parts import PART_BYTES, STAGED_SCHEMA, PartWriter, StagedPart, wrapped
from penstock.jobs.sinks.publishing import Publisher
from penstock.jobs.sinks.sink import Batch, SinkContext
from penstock.jobs.spec import FileSink
from penstock.jobs.storage.checkpoint import Checkpoint
from penstock.jobs.storage.errors import BucketUnreachable
from penstock.jobs.stream.streams import ENVELOPE, TIME

# A task writes some 200,000 rows a second; fewer rows than this do not justify another task.
ROWS_A_TASK = 100_000
# Characters escaped in a directory name, and the name of the directory for null (Apache Hive, "LanguageManual DDL", dynamic partitions; the
# characters are those of org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils).
_ESCAPED = "%\"#'*/:=?\\{[]^\x7f"
_NOT_PLAIN = r"[\x01-\x1f\x7f%\"#'*/:=?\\{\[\]^]"
_NULL_DIRECTORY = "__HIVE_DEFAULT_PARTITION__"
# S3 allows keys of 1,024 bytes (Amazon S3 User Guide, "Naming Amazon S3 objects"): that leaves 400 for the path and the names of columns
# and file.
_LONGEST_VALUE_BYTES, _LONGEST_DIRECTORY_BYTES, _HASH_DIGITS = 200, 600, 32


def now_ms() -> int:
    """The wall-clock time in epoch milliseconds."""
    return time.time_ns() // 1_000_000


@dataclass(frozen=True)
class Files:
    """File sink of a query.

    Args:
        name: name of the sink in the spec.
        sink: sink of the spec.
        bucket: bucket of the files.
        query: id that distinguishes the files of this query from those of an earlier one with another checkpoint; part of the file
            names.
        checkpoint: checkpoint with the manifests and chunks.
        clock: function that returns epoch milliseconds.
    """

    name: str
    sink: FileSink
    bucket: str
    query: str
    checkpoint: Checkpoint
    clock: Callable[[], int] = now_ms

    @classmethod
    def of(cls, name: str, sink: FileSink, context: SinkContext) -> Files:
        """Builds the sink from its spec."""
        return cls(name, sink, sink.bucket or context.output_bucket, context.identity, context.checkpoint)

    def check(self) -> None:
        """Publishes what the previous run decided but did not finish.

        Raises:
            StagedPartGone: JOB-006.
            CheckpointDamaged: JOB-008.
            BucketUnreachable: JOB-009.
        """
        with self._s3_errors():
            self._settled()

    def idle(self, now_ms: int) -> None:
        """Closes the part files that are due.

        Raises:
            StagedPartGone: JOB-006.
            BucketUnreachable: JOB-009.
        """
        with self._s3_errors():
            last = self._settled()
            if last is not None and any(part.due(self.sink.roll, now_ms) for part in last.open):
                self._decided(last, functools.partial(self._closing, last, now_ms))
                self._settled()

    def write(self, rows: DataFrame, batch: Batch) -> None:
        """Writes the rows of a micro-batch.

        Args:
            rows: data rows with their event time.
            batch: the micro-batch.

        Raises:
            BadDeclaration: JOB-004, the rows lack a column that the files are bucketed by.
            ReplayDiffers: JOB-007.
            StagedPartGone: JOB-006.
            BucketUnreachable: JOB-009.
        """
        self.publish(rows, batch)

    def publish(self, rows: DataFrame, batch: Batch) -> Manifest:
        """Like `write`; returns the manifest, written by this run or by an earlier attempt."""
        with self._s3_errors():
            records = self._records(rows)
            staged: _Staged | None = None
            while True:
                last = self._settled()
                if last is not None and last.batch >= batch.number:
                    if staged:
                        self._discard(staged, last)
                    return self._replayed(last, records, batch)
                # Staged rows of another attempt are kept until a manifest exists: a slow driver could still include them in one.
                staged = staged or self._stage(records, batch)
                decided = self._decided(last, functools.partial(self._decision, last, staged, batch))
                if decided is not None:
                    self._settled()
                    return decided

    @cached_property
    def _log(self) -> PartLog:
        return PartLog(self.checkpoint, self.name)

    @cached_property
    def _publisher(self) -> Publisher:
        place = urlsplit(self.checkpoint.uri)
        return Publisher(self.bucket, place.netloc, f"{place.path.strip('/')}/penstock/sinks/{self.name}/chunks/")

    @contextmanager
    def _s3_errors(self) -> Iterator[None]:
        """Context that turns errors of S3 into `BucketUnreachable`."""
        try:
            yield
        except (ClientError, BotoCoreError, PythonException) as error:
            message = _s3_message(error)
            if message is None:
                raise
            fix = "check the bucket's name and the job's permissions"
            raise BucketUnreachable(path=f"s3a://{self.bucket}/{self.sink.path}", given=message, fix=fix) from error

    def _records(self, rows: DataFrame) -> DataFrame:
        """The columns that tasks write: `_directory` and `_hash`, with `_line` for JSON, or the fields."""
        fields = [name for name in rows.columns if name not in ENVELOPE]
        line = F.to_json(F.struct(*fields), {"ignoreNullFields": "false"})
        directory = self._directory(fields)
        digest = F.xxhash64(directory, line).alias("_hash")
        if self.sink.format == LINES:
            return rows.select(directory.alias("_directory"), digest, line.alias("_line"))
        return rows.select(directory.alias("_directory"), digest, *fields)

    def _directory(self, fields: Sequence[str]) -> Column:
        by = self.sink.bucket_by
        if by == "none":
            return F.lit("")
        if by == "event-date":
            # This function relies on the session's time zone being UTC (jobs/driver/session.py).
            local = F.from_utc_timestamp(TIME, self.sink.zone)
            return F.date_format(local, self.sink.date_pattern)
        missing = [name for name in by if name not in fields]
        if missing:
            need = f"columns of the rows: {', '.join(fields)}"
            raise BadDeclaration(path=f"sink {self.name}, bucketBy", given=", ".join(missing), need=need, fix="correct the names")
        longest = min(_LONGEST_VALUE_BYTES, _LONGEST_DIRECTORY_BYTES // len(by))
        return F.concat_ws("/", *(F.concat(F.lit(f"{name}="), _escaped(F.col(name), longest)) for name in by))

    def _stage(self, records: DataFrame, batch: Batch) -> _Staged:
        tasks = max(1, math.ceil(batch.rows / ROWS_A_TASK))
        staged = batch.gathered(records, tasks).mapInArrow(self._writer(batch), STAGED_SCHEMA).collect() if batch.rows else []
        return _Staged.of([row.asDict() for row in staged], self._shape(records))

    def _writer(self, batch: Batch) -> PartWriter:
        """Writer that stages the rows: as chunks, or as whole files if these would be due at once."""
        held = self.clock() - batch.time_ms < self.sink.roll.interval
        return self._chunk_writer(batch.number) if held else self._file_writer(batch.number)

    def _file_writer(self, batch: int) -> PartWriter:
        return PartWriter(
            self.bucket, self.sink.path, self._stem(batch), self._suffix(self.sink.format), self.sink.format, self.sink.roll.size
        )

    def _chunk_writer(self, batch: int) -> PartWriter:
        bucket, folder = self._publisher.chunks_bucket, self._publisher.chunks_folder.rstrip("/")
        size = min(PART_BYTES, self.sink.roll.size)
        return PartWriter(bucket, folder, f"{batch:08d}", f".{self.sink.format}", self.sink.format, size, chunks=True)

    def _shape(self, records: DataFrame) -> str:
        if self.sink.format == LINES:
            return LINES
        return f"{self.sink.format}:{hashlib.sha256(records.schema.simpleString().encode()).hexdigest()[:16]}"

    def _decided(self, last: Manifest | None, decide: Callable[[], Manifest]) -> Manifest | None:
        """Writes the next decision; None if another driver has written one after `last`, which may have deleted the chunks of this one."""
        try:
            manifest = decide()
        except StagedPartGone:
            if not self._log.followed(last):
                raise
            return None
        if self._log.add(manifest):
            return manifest
        return None

    def _decision(self, last: Manifest | None, staged: _Staged, batch: Batch) -> Manifest:
        """Decides on the rows of a micro-batch and on the open parts."""
        now_ms = self.clock()
        parts = extended(last.open if last else (), staged.chunks, self.sink.roll, staged.shape, batch.time_ms, now_ms)
        number = last.number + 1 if last else 0
        closed = [part for part in parts if part.shape != staged.shape or part.due(self.sink.roll, now_ms)]
        return Manifest(
            number=number,
            batch=batch.number,
            rows=staged.rows,
            digest=staged.digest,
            parts=(*staged.parts, *self._composed(number, batch.number, closed)),
            used=_names(closed),
            open=tuple(part for part in parts if part not in closed),
        )

    def _closing(self, last: Manifest, now_ms: int) -> Manifest:
        """Decides to close what is due, between micro-batches."""
        number = last.number + 1
        closed = [part for part in last.open if part.due(self.sink.roll, now_ms)]
        left = tuple(part for part in last.open if part not in closed)
        parts = self._composed(number, last.batch, closed)
        return last.model_copy(update={"number": number, "parts": parts, "used": _names(closed), "composed": (), "open": left})

    def _composed(self, number: int, batch: int, closed: Sequence[OpenPart]) -> tuple[StagedPart, ...]:
        """Composes closed parts, as uploads that the decision completes."""
        stem = f"{self._stem(batch)}-c{number:06d}"
        files = []
        for place, part in enumerate(closed):
            name = f"{stem}-{place:03d}{self._suffix(part.shape.partition(':')[0])}"
            files.append(("/".join(step for step in (self.sink.path, part.directory, name) if step), part))
        return self._publisher.compose(files)

    def _replayed(self, last: Manifest, records: DataFrame, batch: Batch) -> Manifest:
        """The decision that includes the micro-batch, if the replay produced the same rows."""
        manifest = self._log.of_batch(batch.number)
        if manifest is None:
            # That long ago that only a driver considered dead would replay it.
            return last
        totals = records.agg(F.count("*").alias("rows"), F.sum(F.col("_hash").cast("decimal(38,0)")).alias("digest")).first()
        assert totals is not None
        rows, digest = int(totals["rows"]), wrapped(int(totals["digest"] or 0))
        if (rows, digest) != (manifest.rows, manifest.digest):
            need = f"the {manifest.rows} rows of the first run (digest {manifest.digest}); the replay has {rows} (digest {digest})"
            fix = "remove random, clock-dependent and unordered expressions from the query, or persist their results before they are used"
            raise ReplayDiffers(path=f"sink {self.name}, batch {manifest.batch}", need=need, fix=fix)
        return manifest

    def _settled(self) -> Manifest | None:
        """The last decision, with its files published and what is no longer needed deleted."""
        while True:
            last = self._log.last()
            if last is None or self._log.finished(last):
                return last
            if self._log.published(last) or self._published(last):
                self._clean_up(last)
                self._log.finish(last)

    def _published(self, manifest: Manifest) -> bool:
        """Publishes the files of a manifest; False if another driver already has, and a reader has moved them: the log is read again."""
        try:
            self._publisher.publish(manifest.parts, manifest.composed)
        except StagedPartGone:
            if not (self._log.followed(manifest) or self._log.marked(manifest)):
                raise
            return False
        # Before the chunks are deleted: a driver that finds no mark needs them.
        self._log.publish(manifest)
        return True

    def _clean_up(self, manifest: Manifest) -> None:
        """Deletes what attempts at this decision and, in the first call, at earlier ones have left."""
        first = not self._log.has_finished
        self._publisher.forget((*manifest.used, *(chunk.name for part in manifest.composed for chunk in part.chunks)))
        if manifest.parts or manifest.composed or first:
            kept = [part.upload_id for part in manifest.parts]
            self._publisher.abort(self.sink.path, f"{self.sink.prefix}{self.query}-", manifest.batch, manifest.number, kept)
        self._publisher.sweep(manifest.batch, _names(manifest.open), earlier=first)

    def _discard(self, staged: _Staged, last: Manifest) -> None:
        """Deletes the staged rows of a micro-batch that another driver has decided."""
        ours = {part.upload_id for part in last.parts}
        self._publisher.discard(part for part in staged.parts if part.upload_id not in ours)
        needed = set(_names(last.open))
        self._publisher.forget(chunk.name for _, chunk in staged.chunks if chunk.name not in needed)

    def _suffix(self, format: str) -> str:
        return self.sink.suffix if self.sink.suffix is not None and format == self.sink.format else f".{format}"

    def _stem(self, batch: int) -> str:
        return f"{self.sink.prefix}{self.query}-{batch:08d}"


@dataclass(frozen=True)
class _Staged:
    """A micro-batch's staged rows, not visible to readers."""

    parts: tuple[StagedPart, ...]
    chunks: tuple[tuple[str, Chunk], ...]
    rows: int
    digest: int
    shape: str

    @classmethod
    def of(cls, written: Iterable[dict[str, Any]], shape: str) -> _Staged:
        """What tasks have written, in the form of `STAGED_SCHEMA`."""
        rows = sorted(written, key=lambda row: str(row["key"]))
        return cls(
            parts=tuple(_staged(row) for row in rows if row["upload_id"]),
            chunks=tuple((row["directory"], _chunk(row)) for row in rows if not row["upload_id"]),
            rows=sum(row["rows"] for row in rows),
            digest=wrapped(sum(row["digest"] for row in rows)),
            shape=shape,
        )


def _names(parts: Iterable[OpenPart]) -> tuple[str, ...]:
    return tuple(chunk.name for part in parts for chunk in part.chunks)


def _escaped(column: Column, longest_bytes: int) -> Column:
    """A value as a directory name, escaped as in Hive; a long one is replaced by its beginning and a hash of the whole."""
    text = column.cast("string")
    escaped = text
    for character in (*_ESCAPED, *map(chr, range(1, 32))):
        escaped = F.replace(escaped, F.lit(character), F.lit(f"%{ord(character):02X}"))
    plain = F.when(text.rlike(_NOT_PLAIN), escaped).otherwise(text)
    # A character has at most four bytes. Characters that need escapes become underscores, so that no escape is cut in two.
    beginning = F.regexp_replace(F.substring(text, 1, max(0, longest_bytes - _HASH_DIGITS - 1) // 4), _NOT_PLAIN, "_")
    cut = F.concat(beginning, F.lit("-"), F.substring(F.sha2(text, 256), 1, _HASH_DIGITS))
    short = F.when(F.octet_length(plain) > longest_bytes, cut).otherwise(plain)
    return F.when(F.coalesce(text, F.lit("")) == "", _NULL_DIRECTORY).otherwise(short)


def _s3_message(error: Exception) -> str | None:
    """The message of S3 or its client; a task's error arrives as the text of its traceback. None if a task failed for another reason."""
    if not isinstance(error, PythonException):
        return str(error)
    lines = [line.strip() for line in str(error).splitlines()]
    return next((line.partition(": ")[2] for line in reversed(lines) if line.startswith("botocore.")), None)


def _staged(row: dict[str, Any]) -> StagedPart:
    wanted = {name: row[name] for name in StagedPart.model_fields}
    return StagedPart.model_validate(wanted | {"etags": tuple(json.loads(row["etags"]))})


def _chunk(row: dict[str, Any]) -> Chunk:
    return Chunk(name=row["key"], rows=row["rows"], bytes=row["bytes"])
