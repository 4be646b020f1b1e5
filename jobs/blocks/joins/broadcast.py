"""The broadcast join: a small, slowly changing stream that is available to many tasks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Literal

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, MapType, StructType, VariantType

from penstock.jobs.blocks.joins.group_keys import group_keys
from penstock.jobs.blocks.joins.in_order import LEFT, RIGHT, from_text, key_text, packed
from penstock.jobs.blocks.joins.sides import Side, check, check_how, names, without_partner
from penstock.jobs.blocks.joins.temporal import joined
from penstock.jobs.blocks.joins.versioned import ALL, BY_RIGHT, Every, Newest, run
from penstock.jobs.stream.streams import TIME, Stream

# A constant, because a checkpoint is bound to it.
COPIES = 16
_NESTED = (ArrayType, MapType, StructType, VariantType)


def broadcast_join(
    left: Side,
    small: Side,
    *,
    on: str | Callable[[Column, Column], Column] | None = None,
    how: Literal["inner", "left"] = "inner",
    copies: int = COPIES,
) -> Stream:
    """Joins each row with a small, slowly changing table of which many tasks have a copy, like Flink's broadcast state.

    The state holds several copies of the whole table, spread over the state partitions, and left rows go to any of them: a hot key costs
    no more than others, and rows may be joined by a condition instead of a key. Left rows are joined with what was valid at their event
    time, as in a `temporal_join`: its notes on versions, deletions, waiting and idleness apply here too.

    Cost: the table once per copy in the state; each of its changes is written once per copy, and a micro-batch reads the table once per
    copy. All rows of a copy that are due together are in memory at once. With `on`, each left row is compared with
    each row of the table. No more tasks than copies join rows.

    Args:
        left: the rows to enrich.
        small: the table's changelog; a row replaces the previous one with the same key, and with `on` the one with the same `unique`
            fields or, without them, the same key.
        on: a condition instead of the keys, as SQL over the sides' names as structs, ``payments.amount > rules.limit``, or as a function
            of the two structs, ``lambda payment, rule: payment.amount > rule.limit``; every row of the table that satisfies it matches.
        how: ``left``: rows without a match are data with nulls; ``inner``: they are counted as unmatched.
        copies: of the table. A checkpoint is bound to their number: with another, left rows would meet empty copies. It therefore does
            not follow the parallelism, which may change between two starts. Use more if more tasks should join, fewer if the table is
            large and the job is not.

    Returns:
        The columns `left.name` and `small.name`, each a struct of that side's fields, at the left row's event time.

    Raises:
        ValueError: a side without event time, incompatible sides, `unique` fields other than the key beside a key, or no copies.
    """
    check_how(how, ("inner", "left"))
    if copies < 1:
        raise ValueError(f"copies = {copies}: must be greater than 0")
    if on is None:
        check(left, small)
        _check_unique(left, small)
        if how == "inner":
            left = replace(left, stream=without_partner(left))
    else:
        check(replace(left, key=()), replace(small, key=()))
    small = replace(small, key=small.unique or small.keys)
    small = replace(small, stream=without_partner(small))
    buckets = F.array(*(F.lit(key) for key in group_keys(copies)))
    # By the row's own content: a replay uses the same bucket, and a hot key is spread over all of them. Spark has no hash of maps.
    hashed = [TIME, *(field.name for field in left.schema.fields if not isinstance(field.dataType, _NESTED))]
    bucket = F.element_at(buckets, (F.pmod(F.xxhash64(*hashed), F.lit(copies)) + 1).cast("int"))
    left_id = F.lit("") if on is not None else key_text(left, left.keys)
    one = packed(left, LEFT, bucket, left_id, gone=F.lit(False))
    other = packed(small, RIGHT, F.explode(buckets), key_text(small, small.keys))
    rows = one.unionByName(other)
    if on is None:
        # The right rows are parsed before they are repeated.
        by_right = run(rows, Newest(whole=True), BY_RIGHT).withColumn("_right", from_text(F.col("_right"), small.schema))
        pairs = by_right.select(F.explode(F.arrays_zip("_us", "_left")).alias("_one"), "_right").select("_one.*", "_right")
        return joined(pairs, from_text(F.col("_left"), left.schema), F.col("_right"), left, small, how)
    matches = run(rows, Every(), ALL)
    left_row = from_text(F.col("_left"), left.schema)
    table = F.transform("_rights", lambda text: from_text(text, small.schema))
    structs = matches.select("_us", left_row.alias(left.name), table.alias("_rights"))
    partners = (
        F.expr(f"filter(_rights, `{small.name}` -> {on})") if isinstance(on, str) else F.filter("_rights", partial(on, F.col(left.name)))
    )
    pairs = structs.select("_us", left.name, F.explode_outer(partners).alias("_right"))
    return joined(pairs, F.col(left.name), F.col("_right"), left, small, how)


def _check_unique(left: Side, small: Side) -> None:
    """Rejects a table with several rows per key if the key identifies the row."""
    known_by = names(small.unique or small.keys)
    if set(known_by) != set(small.keys):
        on = " and ".join(f"{left.name}.{mine} = {small.name}.{other}" for mine, other in zip(left.keys, small.keys, strict=True))
        said = f"{small.name} is unique by {', '.join(known_by)}, but a join without a condition uses its key, {', '.join(small.keys)}"
        raise ValueError(f'{said}: remove unique, or join with on="{on}"')
