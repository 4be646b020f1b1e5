"""Rows of a stateful operator in Python as Arrow streams: one row for those of a group that a task has read together.

PySpark gives a processor its rows by way of a tuple each (``transform_with_state_func`` in pyspark/worker.py, 4.3.0); ``mapInArrow``,
before the shuffle, knows no single rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.jobs.blocks.joins.as_of import waiting_schema
from penstock.jobs.stream.event_time.engine import with_event_time
from penstock.jobs.stream.streams import TIME

if TYPE_CHECKING:
    import pyarrow as pa

_GROUPED = "_group string, rows binary, newest_us bigint"
_COLUMNS = {"at_us": "_us", "side": "_side", "rank": "_rank", "gone": "_gone", "id": "_id", "row": "_row"}


def grouped(rows: DataFrame) -> DataFrame:
    """The rows of `penstock.jobs.blocks.joins.in_order.packed` by group: ``_group``, ``rows``, an Arrow stream with the columns of
    `waiting_schema`, and the event time of the newest of them.
    """
    named = rows.select("_group", *(F.col(column).alias(name) for name, column in _COLUMNS.items()))
    streams = named.mapInArrow(_by_group, _GROUPED)
    # Of the newest: Spark drops what is behind the watermark, and no row of a late one is here.
    return with_event_time(streams.withColumn(TIME, F.timestamp_micros("newest_us")).drop("newest_us"))


def _by_group(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    for batch in batches:
        if batch.num_rows:
            yield pa.RecordBatch.from_pylist([*_streams(pa.Table.from_batches([batch]))], _grouped_schema())


def _streams(rows: pa.Table) -> Iterator[dict[str, object]]:
    import numpy as np
    import pyarrow.compute as pc

    rows = rows.take(pc.sort_indices(rows["_group"])).combine_chunks()
    codes = rows["_group"].combine_chunks().dictionary_encode().indices.to_numpy(zero_copy_only=False)
    starts = np.flatnonzero(np.diff(codes, prepend=-1))
    schema = waiting_schema()
    waiting = rows.select(schema.names).cast(schema)
    for start, end in zip(starts, [*starts[1:], len(codes)], strict=True):
        part = waiting.slice(start, end - start)
        yield {"_group": rows["_group"][int(start)].as_py(), "rows": encoded(part), "newest_us": pc.max(part["at_us"]).as_py()}


def _grouped_schema() -> pa.Schema:
    import pyarrow as pa

    return pa.schema([("_group", pa.string()), ("rows", pa.binary()), ("newest_us", pa.int64())])


def encoded(table: pa.Table) -> bytes:
    """A table as an Arrow stream, which other versions of Arrow can read."""
    import pyarrow as pa

    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    content: bytes = out.getvalue().to_pybytes()
    return content


def decoded(stream: bytes) -> pa.Table:
    """The table again."""
    import pyarrow as pa

    return pa.ipc.open_stream(stream).read_all()
