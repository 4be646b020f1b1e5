"""Rows as text, only the last one of each key, for sinks that overwrite by key.

The tasks that write get every value as text from Spark: it can represent a value of any database type, and timestamps outside of the
range of Python's types.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, BinaryType, DataType, MapType, StringType, StructType, TimestampType

from penstock.jobs.sinks.newest import newest
from penstock.jobs.stream.streams import ENVELOPE

# Rows that a task writes at a time; they are kept in memory until the database has committed them.
ROWS_A_TASK = 50_000
# Replacement of U+0000, which PostgreSQL's text can't contain.
_REPLACEMENT = "\ufffd"
# In JSON it is escaped, and its backslash may be part of the data.
_NUL_IN_JSON = r"(?<!\\)((?:\\\\)*)\\u0000"


def fields_of(rows: DataFrame, *without: str) -> list[str]:
    """Names of the data columns.

    Args:
        rows: rows of a micro-batch.
        without: columns that are not part of the data.
    """
    return [name for name in rows.columns if name not in ENVELOPE and name not in without]


def last_of_each_key(
    rows: DataFrame, fields: Sequence[str], key: Sequence[str], count: int, *, updates: bool, version: str | None = None
) -> DataFrame:
    """The rows with their fields as text; only the newest one of each key.

    Args:
        rows: data rows of a micro-batch.
        fields: fields to keep, those of the key included.
        key: key columns.
        count: number of rows.
        updates: whether a row replaces the earlier one with its key.
        version: column that determines the newest row; None for the event time. `penstock.jobs.sinks.newest` decides among equally new
            rows.

    Returns:
        Partitions of about `ROWS_A_TASK` rows; all rows of a key are in the same one.
    """
    keys = {f"_key{number}": _column(name) for number, name in enumerate(key)}
    texts = rows.select(
        *(column.alias(name) for name, column in keys.items()),
        newest(rows, updates=updates, version=version).alias("_newest"),
        *(as_text(name, rows.schema[name].dataType).alias(name) for name in fields),
    )
    row = F.max_by(F.struct(*(_column(name) for name in fields)), F.col("_newest"))
    tasks = max(1, math.ceil(count / ROWS_A_TASK))
    return texts.repartition(tasks, *keys).groupBy(*keys).agg(row.alias("_row")).select("_row.*")


def as_text(name: str, kind: DataType) -> Column:
    """A column's values as text: timestamps in ISO 8601 and UTC, bytes as ``\\x`` and hexadecimal digits, nested values as JSON."""
    column = _column(name)
    if isinstance(kind, StringType):
        return F.translate(column, "\0", _REPLACEMENT)
    if isinstance(kind, BinaryType):
        return F.concat(F.lit("\\x"), F.lower(F.hex(column)))
    if isinstance(kind, TimestampType):
        # The session's time zone is UTC (jobs/driver/session.py).
        return F.date_format(column, "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX")
    if isinstance(kind, ArrayType | MapType | StructType):
        json = F.to_json(column, {"ignoreNullFields": "false"})
        return F.regexp_replace(json, _NUL_IN_JSON, f"$1{_REPLACEMENT}")
    return column.cast("string")


def _column(name: str) -> Column:
    return F.col("`" + name.replace("`", "``") + "`")
