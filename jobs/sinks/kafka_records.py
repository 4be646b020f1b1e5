"""Converts rows to the records of a Kafka topic."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.jobs.errors import BadDeclaration
from penstock.jobs.sinks.newest import newest
from penstock.jobs.spec import KafkaSink
from penstock.jobs.stream.streams import DELETED, ENVELOPE


def records(sink: KafkaSink, rows: DataFrame, *, updates: bool = True) -> DataFrame:
    """Converts rows to records.

    The key is the text of the sink's key column, or a JSON object if it has several; null if it has none. The value is the row as JSON
    with its nulls, or null (a tombstone) if the sink writes deletes and the row's `DELETED` is true. Rows with only the columns ``key``
    and ``value``, those of a side output or records already, are written unchanged.

    Of a feedback the column of the rounds is one more than that of the rows.

    If the sink writes deletes, the last record of a key decides whether the key exists. The rows of a key are therefore ordered by event
    time, rows of the same time as in `penstock.jobs.sinks.newest`, which costs a shuffle by key.

    Args:
        sink: sink of the spec.
        rows: data columns and the event time.
        updates: whether a row replaces the earlier one with its key.

    Returns:
        Columns ``key`` and ``value``, both text.

    Raises:
        BadDeclaration: JOB-004, the rows lack a column that the sink names.
    """
    if rows.columns == ["key", "value"]:
        return rows
    _must_have(sink, rows)
    if sink.feedback is not None:
        # As often as it will have come back when it is read.
        rows = rows.withColumn(sink.feedback.column, F.col(sink.feedback.column) + F.lit(1))
    fields = [name for name in rows.columns if name not in ENVELOPE and not (sink.deletes and name == DELETED)]
    value = _json(fields)
    if not sink.deletes:
        return rows.select(_key(sink.key).alias("key"), value.alias("value"))
    present = ~F.coalesce(F.col(DELETED), F.lit(False))
    order = newest(rows, updates=updates).alias("_newest")
    keyed = rows.select(_key(sink.key).alias("key"), F.when(present, value).alias("value"), order)
    return keyed.repartition("key").sortWithinPartitions("_newest").select("key", "value")


def _key(columns: list[str] | None) -> Column:
    if not columns:
        return F.lit(None).cast("string")
    if len(columns) == 1:
        return F.col(columns[0]).cast("string")
    return _json(columns)


def _json(fields: list[str]) -> Column:
    return F.to_json(F.struct(*fields), {"ignoreNullFields": "false"})


def _must_have(sink: KafkaSink, rows: DataFrame) -> None:
    wanted = [*(sink.key or []), *([DELETED] if sink.deletes else [])]
    missing = [name for name in wanted if name not in rows.columns]
    if missing:
        names = ", ".join(name for name in rows.columns if name not in ENVELOPE)
        fix = (
            "use columns of the rows in the sink's key"
            if DELETED not in missing
            else "set deletes: false, or add a _deleted column to the rows"
        )
        raise BadDeclaration(path=f"topic {sink.topic}", given=", ".join(missing), need=f"columns of the rows: {names}", fix=fix)
