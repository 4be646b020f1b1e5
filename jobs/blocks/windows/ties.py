"""Ranks of rows of which some are equal in what they are ordered by: SQL's RANK and DENSE_RANK."""

from __future__ import annotations

from typing import Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.jobs.blocks.windows.ordering import Order

Ties = Literal["rank", "dense_rank"]
_LIST, _BYS = "_best", "_bys"


def in_order(row: Column, by: Column, key: Column, order: Order) -> Column:
    """An aggregate of all rows of a group, in order.

    Args:
        row: a struct of the fields.
        by: a struct of what decides the rank.
        key: a struct that begins with the same values and orders the rows.
        order: ascending or descending.
    """
    descending = order == "desc"

    def compared(one: Column, other: Column) -> Column:
        first = one.key > other.key if descending else one.key < other.key
        return F.when(first, -1).when(one.key == other.key, 0).otherwise(1)

    # By the keys alone: a row may have maps, which Spark does not compare. Sorted at once: the list depends on how rows arrive.
    return F.array_sort(F.collect_list(F.struct(by.alias("by"), key.alias("key"), row.alias("row"))), compared)


def with_ranks(lists: DataFrame, n: int, order: Order, ties: Ties) -> DataFrame:
    """Lists of all rows of a group made lists of those that have the ranks 1 to `n`.

    Args:
        lists: with a column ``_best`` of `in_order`.
        n: the last rank.
        order: of the rows.
        ties: kind of the ranks.

    Returns:
        The same rows; ``_best`` is a list of structs of ``rank`` and ``row``, in order.
    """
    bys = F.transform(_LIST, lambda one: one.by)
    frame = lists.withColumn(_BYS, F.array_distinct(bys) if ties == "dense_rank" else bys)
    last = F.get(_BYS, F.lit(n - 1))

    def is_among(one: Column) -> Column:
        return last.isNull() | (one.by >= last if order == "desc" else one.by <= last)

    def ranked(one: Column) -> Column:
        return F.struct(F.array_position(_BYS, one.by).cast("int").alias("rank"), one.row.alias("row"))

    return frame.withColumn(_LIST, F.transform(F.filter(_LIST, is_among), ranked))
