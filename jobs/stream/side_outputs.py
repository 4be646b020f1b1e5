"""Side-output rows upstream of a stateful operator: staged while they pass, written with their micro-batch.

A stateful operator of Spark would keep or drop a row that is not data. So tasks take such rows out of the DataFrame before the operator
and stage them in the checkpoint directory, one object per attempt of a task:

    penstock/aside/<micro-batch>/<fencing token>/<run>/<operator>-<partition>-<attempt>.parquet

At the end of the micro-batch they are read back from there, so the source is read only once. An object is written once and never
replaced: a task may run again at any time (after a failure or a lost executor, speculatively, or because a cached block is gone), while
the driver reads. The driver lists the objects once per micro-batch and takes one attempt of each task, and only those of its own token
and run: another driver, or an earlier run of the micro-batch by this one, may have split the rows differently.

Any attempt is right, even one that failed: it wrote its object after its last row, and all attempts have the same rows, because
``offsets/N`` fixes the micro-batch's records, its time and its watermark, and blocks give the same rows in whatever order a shuffle
delivers them. The exception is a non-deterministic expression upstream, accepted for sinks that write at least once: two attempts may
then tag a row differently, and the row may be in both outputs or in neither.

A late attempt leaves an object behind. It is deleted with a later micro-batch, as are those of interrupted ones: the listing covers them
all. A driver deletes nothing with a greater token than its own.

Cost: every row passes through Python once, as Arrow; a PUT for each task with such rows, a LIST and, if there are any, a DELETE of up to
a thousand objects per micro-batch. Nothing for a job without such an operator.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from botocore.exceptions import BotoCoreError, ClientError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from penstock.jobs.errors import BucketUnreachable
from penstock.jobs.storage.s3 import client
from penstock.jobs.stream.event_time.engine import with_event_time
from penstock.jobs.stream.streams import REASON, RECORD, RECORD_TYPE, TAG, Stream, Tag
from penstock.jobs.stream.task_context import TaskPlace, current_run
from penstock.jobs.stream.task_errors import in_a_task

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.jobs.storage.checkpoint import Checkpoint

SCHEMA = f"{TAG} string, {REASON} string, {RECORD} {RECORD_TYPE}"
_FOLDER = "aside/"
_STAGED = re.compile(
    r"(?P<batch>[0-9]+)/(?P<token>[0-9]+)/(?P<run>[^/]+)/(?P<operator>[0-9]+)-(?P<partition>[0-9]+)-(?P<attempt>[0-9]+)\.parquet"
)
# Numbers of the operators that this process has planned; without any, nothing is staged.
_OPERATORS: set[int] = set()


def data_rows(stream: Stream) -> Stream:
    """The stream's data rows only; side-output rows are staged until the end of the micro-batch."""
    operator = len(_OPERATORS)
    _OPERATORS.add(operator)
    # Without the fields' metadata: a column that the app derived from the event time would be a second event-time column to Spark.
    schema = StructType([StructField(field.name, field.dataType, field.nullable) for field in stream.frame.schema.fields])
    # A row without a record has none of its fields either, whatever their nullability.
    frame = stream.frame.withColumn(RECORD, F.col(RECORD).cast(RECORD_TYPE))
    kept = frame.mapInArrow(_StageSideRows(operator), schema)
    return replace(stream, frame=with_event_time(kept) if stream.timed else kept)


@dataclass(frozen=True)
class StagedRows:
    """The side-output rows that the tasks of one run of a micro-batch have staged, once they all have run.

    Args:
        checkpoint: with the driver's fencing token.
        run: id of the query's run.
        batch: the micro-batch's number.
    """

    checkpoint: Checkpoint
    run: str
    batch: int

    @classmethod
    def of_micro_batch(cls, session: SparkSession, checkpoint: Checkpoint, batch: int) -> StagedRows:
        """Of the current micro-batch, inside it."""
        return cls(checkpoint, current_run(session), batch)

    def rows(self, session: SparkSession) -> DataFrame | None:
        """The staged rows, with the columns of `SCHEMA`; None if there are none.

        Raises:
            BucketUnreachable: JOB-009.
        """
        # By task: which of its attempts is taken makes no difference.
        chosen = {(one["operator"], one["partition"]): name for name, one in self._objects.items() if one is not None and self._is_own(one)}
        if not chosen:
            return None
        return session.read.schema(SCHEMA).parquet(*(f"{self.checkpoint.uri}/penstock/{name}" for name in sorted(chosen.values())))

    def delete(self) -> None:
        """Deletes the staged rows, those of earlier micro-batches, and those that other runs and earlier drivers left behind.

        Raises:
            BucketUnreachable: JOB-009.
        """
        # The names without a token are those of a version that did not have one.
        old = [name for name, one in self._objects.items() if one is None or int(one["token"]) <= self.checkpoint.token]
        self.checkpoint.delete_all(old)

    def _is_own(self, one: re.Match[str]) -> bool:
        return (int(one["batch"]), int(one["token"]), one["run"]) == (self.batch, self.checkpoint.token, self.run)

    @cached_property
    def _objects(self) -> dict[str, re.Match[str] | None]:
        """Name -> its parts, of everything that is staged in the checkpoint, in the order of the names."""
        names = self.checkpoint.names(_FOLDER) if _OPERATORS else []
        return {f"{_FOLDER}{name}": _STAGED.fullmatch(name) for name in names}


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
        body = io.BytesIO()
        pq.write_table(pa.Table.from_batches(taken), body, use_deprecated_int96_timestamps=False, coerce_timestamps="us")
        place = urlsplit(here.checkpoint)
        folder = f"{place.path.strip('/')}/penstock/{_FOLDER}{here.batch}/{here.token}/{here.run}"
        key = f"{folder}/{self.operator:03d}-{here.partition:05d}-{here.attempt}.parquet"
        try:
            client().put_object(Bucket=place.netloc, Key=key, Body=body.getvalue())
        except (ClientError, BotoCoreError) as error:
            fix = "check the checkpoint bucket and the job's permissions"
            raise BucketUnreachable(path=f"s3a://{place.netloc}/{key}", given=str(error), need="write access", fix=fix) from error
