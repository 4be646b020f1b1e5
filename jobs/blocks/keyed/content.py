"""A row's content as one number, by which a replay orders or distributes rows alike."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F


def content_hash(data: DataFrame, fields: Sequence[str]) -> Column:
    """A hash of a row's content. Spark cannot hash maps; it hashes their JSON.

    Args:
        data: the rows.
        fields: names of the columns that are the content.
    """
    return F.xxhash64(F.to_json(F.struct(*fields))) if any(has_map(data, name) for name in fields) else F.xxhash64(*fields)


def has_map(data: DataFrame, name: str) -> bool:
    """Whether a column is or contains a map: Spark neither hashes nor orders such values."""
    return "map<" in data.schema[name].dataType.simpleString()
