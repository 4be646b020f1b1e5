"""Rows as text, the last of each key alone: what a sink that overwrites by key gets.

The tasks that write get every value as text from Spark: it can be the text of any type of a database, and no value, however large or
early, is beyond what Python can hold.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, BinaryType, DataType, MapType, StringType, StructType, TimestampType

from penstock.jobs.sinks.newest import newest
from penstock.jobs.stream.streams import ENVELOPE

# What one task writes in one go; its rows are kept in memory until the database has them.
ROWS_A_TASK = 50_000
# What takes the place of U+0000, which PostgreSQL's text can't hold.
_REPLACEMENT = "\ufffd"
# In JSON it is written out, and a backslash may be one that is meant.
_NUL_IN_JSON = r"(?<!\\)((?:\\\\)*)\\u0000"


def fields_of(rows: DataFrame, *without: str) -> list[str]:
    """Names of the data columns.

    Args:
        rows: of a micro-batch.
        without: columns that are none of the row's own.
    """
    return [name for name in rows.columns if name not in ENVELOPE and name not in without]


def last_of_each_key(
    rows: DataFrame, fields: Sequence[str], key: Sequence[str], count: int, *, updates: bool, version: str | None = None
) -> DataFrame:
    """The rows with the fields as text; of those with one key, the one that is newest.

    Args:
        rows: data rows of a micro-batch.
        fields: that are kept, those of the key among them.
        key: columns.
        count: of the rows.
        updates: whether a row stands for the one with the same key before it.
        version: the column that says which is newest; None: the event time. See `penstock.jobs.sinks.newest` for rows that are equally new.

    Returns:
        Partitions of about `ROWS_A_TASK` rows, with no key in two of them.
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
    """A column's values as text: times in ISO 8601 and UTC, bytes as ``\\x`` and hexadecimal digits, what is nested as JSON."""
    column = _column(name)
    if isinstance(kind, StringType):
        return F.translate(column, "\0", _REPLACEMENT)
    if isinstance(kind, BinaryType):
        return F.concat(F.lit("\\x"), F.lower(F.hex(column)))
    if isinstance(kind, TimestampType):
        # The session's zone is UTC (jobs/driver/session.py).
        return F.date_format(column, "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX")
    if isinstance(kind, ArrayType | MapType | StructType):
        json = F.to_json(column, {"ignoreNullFields": "false"})
        return F.regexp_replace(json, _NUL_IN_JSON, f"$1{_REPLACEMENT}")
    return column.cast("string")


def _column(name: str) -> Column:
    return F.col("`" + name.replace("`", "``") + "`")
