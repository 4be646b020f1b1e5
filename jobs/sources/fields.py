"""The fields of a source's schema while its records are judged: a column for each.

Not one struct: Spark would build it anew, with all of its fields, at every step of every row.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

# Begins their names, so that none is that of another column of a record.
_PREFIX = "_value_"


def field(name: str) -> Column:
    """A field, by its name in the schema."""
    return F.col("`" + f"{_PREFIX}{name}".replace("`", "``") + "`")


def named_fields(schema: StructType) -> list[Column]:
    """The fields of a schema under their own names."""
    return [field(name).alias(name) for name in schema.names]


def as_fields(values: Mapping[str, Column]) -> list[Column]:
    """The columns of fields.

    Args:
        values: name in the schema -> value.
    """
    return [value.alias(f"{_PREFIX}{name}") for name, value in values.items()]


def with_fields(records: DataFrame, values: Mapping[str, Column]) -> DataFrame:
    """Adds fields to records, or replaces them.

    Args:
        records: the records.
        values: name in the schema -> value.
    """
    return records.withColumns({f"{_PREFIX}{name}": value for name, value in values.items()})
