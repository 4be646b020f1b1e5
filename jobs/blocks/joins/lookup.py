"""Lookup joins: each row with the current row of a database table for its key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from penstock.jobs.blocks.calls.journal import declare
from penstock.jobs.blocks.lookups.table import LookupTable
from penstock.jobs.blocks.lookups.tasks import PART, LookupTask
from penstock.jobs.stream.columns import as_column
from penstock.jobs.stream.event_time.engine import with_event_time
from penstock.jobs.stream.leaving import kept
from penstock.jobs.stream.streams import ENVELOPE, Stream, Tag
from penstock.sizing.units import NotAQuantity, duration_ms

if TYPE_CHECKING:
    import pyarrow as pa

How = Literal["left", "inner"]


def lookup_join(
    stream: Stream,
    table: LookupTable,
    on: str | Column | Mapping[str, str | Column],
    how: How = "left",
    *,
    name: str | None = None,
    concurrency: int = 4,
    timeout: str = "10s",
    retry_for: str = "2m",
) -> Stream:
    """Joins each row with the table's row for its key at the moment it is processed, like Flink's lookup join.

    A task looks up the keys of thousands of rows at once, 500 per query with several concurrent queries, and caches results, including
    misses, as configured in the table's `cache`; a row of the table may be that old. Results are written to the checkpoint before they
    are used (jobs/blocks/calls/journal.py): a replayed micro-batch gets the same, even if the table has changed.

    An unavailable database is retried. After `retry_for` the job fails with JOB-053; the micro-batch is not committed, and the job
    resumes at its next start. Nothing is lost.

    Args:
        stream: the rows to enrich.
        table: ``job.table("accounts")``.
        on: the key: a SQL expression or a column for a key of one column, otherwise key column -> expression for each. A row whose key
            is null, or not a value of the column's type, has no match.
        how: whether a row without a match is kept or counted as unmatched.
        name: of the table's row in the result; by default the table's name in the spec, with ``_`` for ``-``.
        concurrency: concurrent queries of a task.
        timeout: of a query.
        retry_for: how long the database may be unavailable.

    Returns:
        The stream's fields and `name`, a struct of the table's columns, null if there is no match.

    Raises:
        ValueError: a key other than the table's, a name that the stream already has, or an invalid number or duration.
    """
    column = name or table.name.replace("-", "_")
    if column in (*stream.fields, *ENVELOPE):
        raise ValueError(f"the row already has {column}; choose another name for the looked-up row: name=...")
    if concurrency < 1:
        raise ValueError(f"concurrency = {concurrency}: must be at least 1")
    parts = _parts(table, on)
    journal = f"lookup-{table.name}"
    declare(journal)
    task = LookupTask(
        journal=journal,
        path=f"spec.tables.{table.name}",
        url=table.url,
        query=table.query(),
        parts=len(parts),
        row=_arrow(table.schema),
        column=column,
        ttl_ms=table.table.cache.ttl,
        entries=table.table.cache.entries,
        concurrency=concurrency,
        timeout_ms=_duration_ms("timeout", timeout),
        retry_limit_s=_duration_ms("retry_for", retry_for) / 1000,
    )
    keyed = stream.frame.select("*", *(part.alias(f"{PART}{number}") for number, part in enumerate(parts)))
    out = StructType([*stream.frame.schema.fields, StructField(column, table.schema, True)])
    frame = keyed.mapInArrow(task, out)
    if how == "inner":
        frame = kept(frame, F.col(column).isNotNull(), Tag.UNMATCHED)
    return replace(stream, frame=with_event_time(frame) if stream.timed else frame)


def _parts(table: LookupTable, on: str | Column | Mapping[str, str | Column]) -> list[Column]:
    names = [name for name, _ in table.key]
    given = {names[0]: on} if isinstance(on, str | Column) else dict(on)
    if list(given) != names and set(given) != set(names):
        raise ValueError(f"on = {', '.join(given)}: expected one expression for each key column of the table: {', '.join(names)}")
    columns = {name: as_column(value) for name, value in given.items()}
    return [columns[name].try_cast(kind.spark) for name, kind in table.key]


def _arrow(schema: StructType) -> pa.Schema:
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(schema, timezone="UTC")


def _duration_ms(what: str, text: str) -> int:
    try:
        return duration_ms(text)
    except NotAQuantity as error:
        raise ValueError(f'{what} = "{text}": expected {error.need}') from None
