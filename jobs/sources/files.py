"""Files on S3 as a source: each file is read once, each line is a record.

Objects on S3 appear whole, so a file is read as soon as it exists; one that is overwritten under the same name is not read again. Of the
files that arrive between two micro-batches the oldest are read first. Files in subfolders are included; names that begin with ``_`` or
``.`` are ignored.

The topic of a file's record is the URI of the file, its timestamp the modification time. All files form one split: rows may be out of
order by as much as the files are.
"""

from __future__ import annotations

import json
import string
import unicodedata
from typing import TYPE_CHECKING
from urllib.parse import quote

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamReader
from pyspark.sql.types import StructField, StructType

from penstock.jobs.sources import records
from penstock.jobs.sources.fields import as_fields, named_fields, with_fields
from penstock.jobs.sources.records import HEADERS, SPLIT, Input
from penstock.jobs.sources.values import Values, misfits
from penstock.jobs.spec import FilesSource
from penstock.jobs.stream.side_outputs import REASON
from penstock.jobs.stream.streams import Stream

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

# Source: java.net.URI, "Character categories": what a path may have unescaped, and Character.isSpaceChar and isISOControl.
_PLAIN = frozenset(f"{string.ascii_letters}{string.digits}_-!.~'()*,;:$&+=@/")
_BLANK = frozenset({"Zs", "Zl", "Zp", "Cc"})


def stream(given: Input, files: FilesSource, bucket: str) -> Stream:
    """The lines, or the rows, of files as a stream.

    Args:
        given: the source.
        files: settings of the files.
        bucket: bucket of the files unless the source names another.

    Raises:
        BadDeclaration: JOB-004, a schema that such values can't have.
    """
    if files.format == "parquet":
        return records.of_fields(given, _rows(given, files, bucket))
    values = Values(files.format, csv=files.csv)
    read = _lines(given, files, bucket) if given.records is None else given.records.withColumn(SPLIT, F.lit(0))
    if files.format != "text":
        # An empty line at the end of a file, or between two concatenated parts, is not a record.
        read = read.where(F.trim(F.col("value").cast("string")) != "")
    return records.stream(given, values, read)


def _lines(given: Input, files: FilesSource, bucket: str) -> DataFrame:
    lines = _reader(given, files).text(address(files, bucket))
    return _listed(given, lines.select(F.col("value").cast("binary").alias("value"), *_place()))


def _listed(given: Input, records: DataFrame) -> DataFrame:
    """The records; of a source with an end, those of its files alone, whatever has been added to the folder."""
    if given.end is None:
        return records
    # A single literal, for there may be many files.
    uris = F.from_json(F.lit(json.dumps(given.end.files)), "array<string>")
    listed = given.session.range(1).select(F.explode(uris).alias("_uri"))
    return records.join(F.broadcast(listed), records["topic"] == listed["_uri"], "left_semi")


def _rows(given: Input, files: FilesSource, bucket: str) -> DataFrame:
    """The rows of Parquet files; a file whose columns have other types stops the job."""
    lenient = StructType([StructField(one.name, one.dataType, True) for one in given.schema.fields])
    names = given.schema.names
    if given.records is None:
        rows = _reader(given, files).schema(lenient).parquet(address(files, bucket))
        frame = _listed(given, rows.select(*as_fields({name: F.col(name) for name in names}), *_place()))
    else:
        parsed = given.records.withColumns({"_json": F.from_json(F.col("value").cast("string"), lenient), SPLIT: F.lit(0)})
        frame = with_fields(parsed, {name: F.col("_json")[name] for name in names})
    # The original row is only needed for rows that go to a side output.
    value = F.to_json(F.struct(*named_fields(given.schema)), {"ignoreNullFields": "false"}).cast("binary")
    return frame.withColumn("value", value).withColumn(REASON, F.coalesce(*misfits(given.schema), F.lit(None).cast("string")))


def _place() -> list[Column]:
    """The origin of a record in the columns of Kafka's records."""
    file = F.col("_metadata")
    return [
        F.lit(None).cast("binary").alias("key"),
        file["file_path"].alias("topic"),
        F.lit(None).cast("int").alias("partition"),
        F.lit(None).cast("bigint").alias("offset"),
        file["file_modification_time"].alias("timestamp"),
        F.lit(None).cast(HEADERS).alias("headers"),
        F.lit(0).alias(SPLIT),
    ]


def _reader(given: Input, files: FilesSource) -> DataStreamReader:
    # Without the recursive lookup Spark would turn dt=2025-04-05 into a column.
    reader = given.session.readStream.option("recursiveFileLookup", "true")
    return reader.option("maxFilesPerTrigger", files.max_files_per_trigger) if files.max_files_per_trigger else reader


def address(files: FilesSource, bucket: str) -> str:
    """URI of the folder of a source.

    Args:
        files: settings of the files.
        bucket: bucket of the files unless the source names another.
    """
    return f"s3a://{files.bucket or bucket}/{files.path}"


def existing(s3: S3Client, files: FilesSource, bucket: str) -> list[str]:
    """URIs of the files below a source's path, as Spark's ``_metadata.file_path`` has them; those that it ignores are included.

    Args:
        s3: a client.
        files: settings of the files.
        bucket: bucket of the files unless the source names another.

    Raises:
        ClientError: and other errors of the client.
    """
    bucket = files.bucket or bucket
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=f"{files.path}/")
    return [f"s3a://{bucket}/{_escaped(item['Key'])}" for page in pages for item in page.get("Contents", [])]


def _escaped(key: str) -> str:
    """A path as java.net.URI writes it: of the characters outside ASCII it escapes blanks and controls only."""
    return "".join(one if one in _PLAIN or not (one.isascii() or unicodedata.category(one) in _BLANK) else quote(one) for one in key)
