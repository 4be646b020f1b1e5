"""From rows to the records of a Kafka topic."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.jobs.errors import BadDeclaration
from penstock.jobs.sinks.newest import newest
from penstock.jobs.spec import KafkaSink
from penstock.jobs.stream.streams import DELETED, ENVELOPE


def records(sink: KafkaSink, rows: DataFrame, *, updates: bool = True) -> DataFrame:
    """The records that rows are written as.

    The key is the text of the one column that the sink names, or a JSON object of several; null where it names none. The value is the row
    as JSON with its nulls, or null (a tombstone) where the sink writes deletes and the row's `DELETED` is true. Rows with the columns
    ``key`` and ``value`` alone, as a side output has them, are written as they are.

    Where the sink writes deletes, the last record of a key says whether it is there. So the rows of a key are put in the order of their
    event times, and those of one moment in that of `penstock.jobs.sinks.newest`. That costs a shuffle by key.

    Args:
        sink: of the spec.
        rows: data columns, with the envelope beside them.
        updates: whether a row stands for the one with the same key before it.

    Returns:
        Columns ``key`` and ``value``, both text.

    Raises:
        BadDeclaration: JOB-004, the rows lack a column that the sink names.
    """
    if rows.columns == ["key", "value"]:
        return rows.select(F.col("key").cast("string").alias("key"), F.col("value").cast("string").alias("value"))
    _must_have(sink, rows)
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
