"""Side-output rows upstream of a stateful operator: staged while they pass, written with their micro-batch.

A stateful operator of Spark would keep or drop a row that is not data. So tasks take such rows out of the DataFrame before the operator
and stage them in the checkpoint directory, ``penstock/aside/<micro-batch>/``, one object per task. At the end of the micro-batch they
are read back from there, so the source is read only once. A retried task overwrites its object with the same rows.

Cost: every row passes through Python once, as Arrow; a PUT and a DELETE for each task with such rows, a LIST per micro-batch.
"""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from penstock.jobs.storage.s3 import client
from penstock.jobs.stream.event_time.engine import with_event_time
from penstock.jobs.stream.streams import REASON, RECORD, RECORD_TYPE, TAG, Stream, Tag
from penstock.jobs.stream.task_context import TaskPlace
from penstock.jobs.stream.task_errors import in_a_task

if TYPE_CHECKING:
    import pyarrow as pa
    from mypy_boto3_s3 import S3Client

SCHEMA = f"{TAG} string, {REASON} string, {RECORD} {RECORD_TYPE}"
_OPERATORS = itertools.count()


def data_rows(stream: Stream) -> Stream:
    """The stream's data rows only; side-output rows are staged until the end of the micro-batch."""
    operator = next(_OPERATORS)
    # Without the fields' metadata: a column that the app derived from the event time would be a second event-time column to Spark.
    schema = StructType([StructField(field.name, field.dataType, field.nullable) for field in stream.frame.schema.fields])
    # A row without a record has none of its fields either, whatever their nullability.
    frame = stream.frame.withColumn(RECORD, F.col(RECORD).cast(RECORD_TYPE))
    kept = frame.mapInArrow(_StageSideRows(operator), schema)
    return replace(stream, frame=with_event_time(kept) if stream.timed else kept)


@dataclass(frozen=True)
class StagedRows:
    """Where side-output rows are staged.

    Args:
        uri: of the checkpoint, ``s3a://bucket/folder``.
    """

    uri: str
    _listed: dict[int, list[str]] = field(default_factory=dict)

    def rows(self, session: SparkSession, batch: int) -> DataFrame | None:
        """The rows that a micro-batch staged, with the columns of `SCHEMA`; None if there are none."""
        keys = self._keys(batch)
        if not keys:
            return None
        bucket = urlsplit(self.uri).netloc
        return session.read.schema(SCHEMA).parquet(*(f"s3a://{bucket}/{key}" for key in keys))

    def clear(self, batch: int) -> None:
        """Deletes the rows that a micro-batch staged."""
        bucket = urlsplit(self.uri).netloc
        for key in self._keys(batch):
            self._s3.delete_object(Bucket=bucket, Key=key)

    def _keys(self, batch: int) -> list[str]:
        place = urlsplit(self.uri)
        pages = self._s3.get_paginator("list_objects_v2").paginate(Bucket=place.netloc, Prefix=f"{_folder(place.path, batch)}/")
        return sorted(item["Key"] for page in pages for item in page.get("Contents", []))

    @cached_property
    def _s3(self) -> S3Client:
        return client()


@dataclass(frozen=True)
class _StageSideRows:
    """The task's side, sent to the Python workers."""

    operator: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow.compute as pc

        taken: list[pa.RecordBatch] = []
        for batch in batches:
            is_data = pc.equal(batch.column(TAG), Tag.DATA)
            rows = batch.filter(is_data)
            if rows.num_rows < batch.num_rows:
                # Rows without a side output are only counted and have no record.
                taken.append(batch.filter(pc.invert(is_data)).select([TAG, REASON, RECORD]))
            yield rows
        if taken:
            with in_a_task():
                self._put(taken)

    def _put(self, taken: list[pa.RecordBatch]) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        here = TaskPlace.here()
        place = urlsplit(here.checkpoint)
        folder = _folder(place.path, here.batch)
        body = io.BytesIO()
        pq.write_table(pa.Table.from_batches(taken), body, use_deprecated_int96_timestamps=False, coerce_timestamps="us")
        key = f"{folder}/{self.operator:03d}-{here.partition:05d}.parquet"
        client().put_object(Bucket=place.netloc, Key=key, Body=body.getvalue())


def _folder(path: str, batch: int) -> str:
    return f"{path.strip('/')}/penstock/aside/{batch}"


def counted(rows: DataFrame | None) -> dict[str, int]:
    """Tag -> rows."""
    return {} if rows is None else {row[TAG]: int(row["count"]) for row in rows.groupBy(TAG).agg(F.count("*").alias("count")).collect()}
