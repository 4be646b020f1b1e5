"""Rows of a group in the order of their event times."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructType, VariantType

from penstock.jobs.stream.streams import TIME


def in_order_of_time(name: str, kind: DataType) -> Column:
    """An aggregate that collects the rows of a group, in an order that does not depend on how they arrived: a replay must pass the same.

    Args:
        name: of the column with the rows as structs; nulls are left out.
        kind: type of the column.

    Returns:
        An array of structs of ``at``, the event time, and ``row``.
    """
    present, at, row = F.col(name).isNotNull(), F.col(TIME).alias("at"), F.col(name).alias("row")
    if _has_order(kind):
        return F.sort_array(F.collect_list(F.when(present, F.struct(at, row))))
    # Maps and variants have no order; their text does.
    collected = F.collect_list(F.when(present, F.struct(at, F.to_json(name).alias("text"), row)))
    less = F.array_sort(collected, lambda one, other: F.when(_key(one) < _key(other), -1).when(_key(one) > _key(other), 1).otherwise(0))
    return F.transform(less, lambda one: F.struct(one.at.alias("at"), one.row.alias("row")))


def _key(one: Column) -> Column:
    return F.struct(one.at, one.text)


def _has_order(kind: DataType) -> bool:
    if isinstance(kind, ArrayType):
        return _has_order(kind.elementType)
    if isinstance(kind, StructType):
        return all(_has_order(field.dataType) for field in kind.fields)
    return not isinstance(kind, MapType | VariantType)
