"""Tables that every micro-batch reads again: small files that are replaced from time to time."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from botocore.exceptions import BotoCoreError, ClientError
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from penstock.jobs.errors import TableFileUnread
from penstock.jobs.storage.s3 import error_code, shared_client
from penstock.jobs.storage.task_objects import TaskObjects, task_objects
from penstock.jobs.stream.event_time.engine import with_event_time
from penstock.jobs.stream.leaving import kept
from penstock.jobs.stream.streams import ENVELOPE, Stream, Tag
from penstock.jobs.stream.task_context import TaskPlace
from penstock.jobs.stream.task_errors import in_a_task

if TYPE_CHECKING:
    import pyarrow as pa

Rows = Iterable[Mapping[str, Any]]


def table_join(
    stream: Stream,
    name: str,
    read: Callable[[], Rows],
    schema: str,
    *,
    on: str | Sequence[str],
    how: Literal["inner", "left"] = "inner",
) -> Stream:
    """Joins each row with the rows of a small table as of the time its micro-batch runs.

    One task reads the table, once per micro-batch, and every task gets a copy. What was read is written to the checkpoint
    (``penstock/tables/<name>/<micro-batch>``) before it is used, so that a replayed micro-batch sees the same rows and sinks stay
    exactly-once. It is deleted two reads later.

    No state and no waiting: rows are joined with the current table, whatever their event time. For what was valid at that time, make the
    table a stream and use `temporal_join`; for a database, use `lookup_join`.

    Args:
        stream: the rows to enrich.
        name: of the table, for the checkpoint; unique per call.
        read: returns all rows; a task calls it, so it must be importable there or picklable. See `json_lines_file` and `csv_file`.
        schema: of the rows as Spark DDL, ``country STRING, name STRING``. Values are parsed as from JSON.
        on: fields of both that must be equal; a null has no match.
        how: ``left``: rows without a match are data with nulls; ``inner``: they are counted as unmatched.

    Returns:
        The stream's fields and the table's others; a row once per match.

    Raises:
        ValueError: a field of both that is not joined on, or one in `on` that is not in both.
    """
    keys = (on,) if isinstance(on, str) else tuple(on)
    of = StructType.fromDDL(schema)
    assert isinstance(of, StructType)
    added = _added(stream, of, keys)
    session = stream.frame.sparkSession
    lines = session.range(1, numPartitions=1).mapInArrow(_Read(name, read), "line string")
    # CSV only has strings: they are cast.
    written = StructType([StructField(one, StringType()) for one in of.names]) if isinstance(read, _File) and read.format == "csv" else of
    rows = lines.select(F.from_json("line", written, {"mode": "FAILFAST"}).alias("_row"))
    values = {one.name: F.col("_row")[one.name].cast(one.dataType) for one in of.fields}
    table = rows.select(
        *(values[key].alias(f"_on_{key}") for key in keys), *(values[one].alias(one) for one in added), F.lit(1).alias("_here")
    )
    condition = reduce(Column.__and__, (F.col(key) == F.col(f"_on_{key}") for key in keys))
    joined = stream.frame.join(F.broadcast(table), condition, "left")
    if how == "inner":
        joined = kept(joined, F.col("_here").isNotNull(), Tag.UNMATCHED)
    joined = joined.select(*stream.fields, *added, *ENVELOPE)
    return Stream(with_event_time(joined) if stream.timed else joined, timed=stream.timed, updates=stream.updates)


def json_lines_file(uri: str) -> Callable[[], Rows]:
    """A reader of a JSON Lines file, for `table_join`. An unreadable file fails the job with JOB-073.

    Args:
        uri: ``s3://bucket/path``, readable by the job's role: docs/blocks/joins.md.
    """
    return _File(uri, "json")


def csv_file(uri: str) -> Callable[[], Rows]:
    """A reader of a CSV file with a header line, for `table_join`; an empty field is null. Otherwise like `json_lines_file`.

    Args:
        uri: ``s3://bucket/path``.
    """
    return _File(uri, "csv")


def _added(stream: Stream, of: StructType, keys: Sequence[str]) -> list[str]:
    missing = [key for key in keys if key not in stream.fields or key not in of.names]
    if missing:
        raise ValueError(f"{', '.join(missing)} must be a field of both the stream and the table")
    added = [name for name in of.names if name not in keys]
    twice = [name for name in added if name in stream.fields]
    if twice:
        raise ValueError(f"the stream also has {', '.join(twice)}; rename the table's field, or join on it")
    return added


@dataclass(frozen=True)
class _File:
    """A file on S3."""

    uri: str
    format: Literal["json", "csv"]

    def __call__(self) -> Iterator[Mapping[str, Any]]:
        text = self._text()
        try:
            yield from _csv_rows(text) if self.format == "csv" else _json_rows(text)
        except ValueError as error:
            need = "CSV with a header row" if self.format == "csv" else "one JSON object per line"
            raise TableFileUnread(path=self.uri, given=str(error), need=need, fix="correct the file") from error

    def _text(self) -> str:
        place = urlsplit(self.uri)
        try:
            return shared_client().get_object(Bucket=place.netloc, Key=place.path.lstrip("/"))["Body"].read().decode("utf-8-sig")
        except ClientError as error:
            # Without permission to list, S3 answers AccessDenied for a file that does not exist.
            fix = "check the URI, and that the job's role may read the file (docs/blocks/joins.md)"
            raise TableFileUnread(path=self.uri, given=error_code(error), need="an existing, readable file", fix=fix) from error
        except BotoCoreError as error:
            raise TableFileUnread(
                path=self.uri, given=str(error), need="a response from S3", fix="check the endpoint and the network"
            ) from error
        except UnicodeDecodeError as error:
            raise TableFileUnread(path=self.uri, given=str(error), need="UTF-8 text", fix="save the file as UTF-8") from error


def _csv_rows(text: str) -> Iterator[Mapping[str, Any]]:
    try:
        for row in csv.DictReader(io.StringIO(text, newline="")):
            yield {name: value or None for name, value in row.items()}
    except csv.Error as error:
        raise ValueError(str(error)) from error


def _json_rows(text: str) -> Iterator[Mapping[str, Any]]:
    # By line feeds only: `splitlines` would also split at characters that JSON allows within a string, such as U+2028.
    for number, line in enumerate(io.StringIO(text, newline=None), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from error
        if not isinstance(row, dict):
            raise ValueError(f"line {number}: {line.strip()[:80]}")
        yield row


@dataclass(frozen=True)
class _Read:
    """The one task's side: the table as JSON Lines."""

    name: str
    read: Callable[[], Rows]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        with in_a_task():
            for _ in batches:
                lines = self._lines().splitlines()
                yield pa.RecordBatch.from_pydict({"line": pa.array(lines, pa.string())})

    def _lines(self) -> str:
        here = TaskPlace.here()
        objects, checkpoint = task_objects(here.checkpoint)
        batch, folder = here.batch, f"{checkpoint}/penstock/tables/{self.name}"
        kept = objects.read(f"{folder}/{batch}")
        if kept is None:
            # In ASCII, with everything else escaped, `splitlines` only sees one kind of line end.
            text = "\n".join(json.dumps(dict(row), default=str) for row in self.read())
            kept = _put_once(objects, f"{folder}/{batch}", text.encode())
            objects.delete(f"{folder}/{batch - 2}")
        return kept.decode()


def _put_once(objects: TaskObjects, name: str, body: bytes) -> bytes:
    """Writes the object unless it exists; an existing one wins, because another task may already use it."""
    if objects.create(name, body):
        return body
    content = objects.read(name)
    assert content is not None
    return content
