"""The broadcast join: a small stream that changes slowly, known to every task."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from jobs.joins.in_order import LEFT, RIGHT, from_text, key_text, packed, run
from jobs.joins.sides import Side, check, check_how, names, without_partner
from jobs.joins.temporal import Versions, joined, matched
from jobs.streams import Stream

_MATCHED = "_us bigint, _left string, _right string"
_ALL = "_us bigint, _left string, _rights array<string>"


def broadcast_join(
    left: Side, small: Side, *, on: str | None = None, how: Literal["inner", "left"] = "inner", copies: int | None = None
) -> Stream:
    """Joins each row with a small table that changes slowly and that every task has a copy of, as Flink's broadcast state.

    Each state partition keeps the whole table, and left rows go to any of them: a key that most rows have costs no more than others, and
    rows may be joined by a condition instead of a key. What is joined is what was valid at the left row's event time, as in a
    `temporal_join`: everything said there of versions, deletions, waiting and idleness holds here.

    Cost: the table once a copy in the state; each change of it is written as often. With `on`, each left row is held against each
    row of the table.

    Args:
        left: the rows that are told.
        small: the table's changes; a row takes the place of the one before with the same `unique` fields, or, without them, the same key.
        on: a condition in SQL instead of the keys, over the sides' names as structs: ``payments.amount > rules.limit``; each row of
            the table for which it holds is told.
        how: ``left``: rows without partner are data with nulls; ``inner``: they are counted as unmatched.
        copies: of the table; by default as many as there are state partitions. It can't be changed while a checkpoint is kept.

    Returns:
        The columns `left.name` and `small.name`, each a struct of that side's fields, at the left row's event time.

    Raises:
        ValueError: a side without event time, or sides that don't fit.
    """
    check_how(how, ("inner", "left"))
    if on is None:
        check(left, small)
        if how == "inner":
            left = replace(left, stream=without_partner(left))
    else:
        check(replace(left, key=()), replace(small, key=()))
    known_by = small.keys if small.unique is None or on is None else names(small.unique)
    small = replace(small, key=known_by)
    small = replace(small, stream=without_partner(small))
    buckets = _buckets(left.stream.frame.sparkSession, copies)
    # By the row's own content: a replay takes the same bucket, and a hot key goes to all of them.
    bucket = F.element_at(buckets, (F.pmod(F.xxhash64(F.to_json(F.struct(*left.fields))), F.size(buckets)) + 1).cast("int"))
    left_id = F.lit("") if on is not None else key_text(left, left.keys)
    one = packed(left, LEFT, bucket, left_id, gone=F.lit(False))
    other = packed(small, RIGHT, F.explode(buckets), key_text(small, small.keys))
    rows = one.unionByName(other)
    if on is None:
        return matched(run(rows, Versions(), _MATCHED), left, small, how)
    found = run(rows, Versions(every=True), _ALL)
    left_row = from_text(F.col("_left"), left.schema)
    table = F.transform("_rights", lambda text: from_text(text, small.schema))
    structs = found.select("_us", left_row.alias(left.name), table.alias("_rights"))
    partners = F.expr(f"filter(_rights, `{small.name}` -> {on})")
    pairs = structs.select("_us", left.name, F.explode_outer(partners).alias("_right"))
    return joined(pairs, F.col(left.name), F.col("_right"), left, small, how)


def _buckets(session: SparkSession, copies: int | None) -> Column:
    """Group keys, one for each copy, that Spark puts into different state partitions."""
    partitions = int(session.conf.get("spark.sql.shuffle.partitions") or 1)
    wanted = partitions if copies is None else copies
    if not 1 <= wanted <= partitions:
        raise ValueError(f"copies = {wanted}, but there are {partitions} state partitions")
    # A partition is the hash of the key modulo their number; with 20 candidates for each, hardly one is left out.
    candidates = session.range(partitions * 20).select(F.col("id").cast("string").alias("key"))
    placed = candidates.groupBy(F.pmod(F.hash("key"), partitions).alias("partition")).agg(F.min(F.col("key").cast("int")).alias("key"))
    keys = [str(row["key"]) for row in placed.orderBy("partition").limit(wanted).collect()]
    return F.array(*(F.lit(key) for key in keys))
