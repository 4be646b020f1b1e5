"""A row's content as one number, by which a replay orders or spreads rows alike."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F


def content_hash(data: DataFrame, fields: Sequence[str]) -> Column:
    """A number that stands for a row's content. Spark does not hash maps; their JSON it does.

    Args:
        data: the rows.
        fields: names of the columns that are the content.
    """
    return F.xxhash64(F.to_json(F.struct(*fields))) if any(has_map(data, name) for name in fields) else F.xxhash64(*fields)


def has_map(data: DataFrame, name: str) -> bool:
    """Whether a column is a map or has one within: such values Spark neither hashes nor orders."""
    return "map<" in data.schema[name].dataType.simpleString()
