"""The temporal join: each row with the version of another stream's row that was valid at its event time."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.jobs.blocks.joins.group_keys import group_keys
from penstock.jobs.blocks.joins.in_order import LEFT, RIGHT, from_text, key_text, packed
from penstock.jobs.blocks.joins.sides import Side, check, check_how, without_partner
from penstock.jobs.blocks.joins.versioned import MATCHED, Newest, run
from penstock.jobs.stream.event_time.engine import with_event_time
from penstock.jobs.stream.leaving import kept
from penstock.jobs.stream.streams import TIME, Stream, Tag

# How many groups the keys are divided among. A constant, because a checkpoint is bound to it.
GROUPS = 64


def temporal_join(left: Side, versions: Side, *, how: Literal["inner", "left"] = "inner") -> Stream:
    """Joins each left row with the version of its key's right row that was valid at its event time, Flink's ``FOR SYSTEM_TIME AS OF``.

    A version is valid from its own event time until that of the next version of its key, or until a row whose ``_deleted`` is true (a
    tombstone) deletes the key. Which version that is, is known only when the watermark has passed the left row's event time: the row
    waits that long, and the result does not depend on which of the two arrived first. A version older than the watermark is late and
    goes to the side output like every late row; results that it would have changed have already been emitted. The state
    holds the current version of each key and the waiting rows of both sides.

    Keys are divided among 64 groups, and no more tasks than groups join rows. All rows of a group that are due together are in memory at
    once.

    A table that changes rarely advances its watermark rarely: set an idleness for its source, or everything waits for it.

    Args:
        left: the rows to enrich.
        versions: the versions by key; each new row of a key replaces the previous one.
        how: ``left``: rows without a valid version are data with nulls; ``inner``: they are counted as unmatched.

    Returns:
        The columns `left.name` and `versions.name`, each a struct of that side's fields, at the left row's event time.

    Raises:
        ValueError: a side without event time, or incompatible sides.
    """
    check(left, versions)
    check_how(how, ("inner", "left"))
    left = left if how == "left" else replace(left, stream=without_partner(left))
    versions = replace(versions, stream=without_partner(versions))
    ours, theirs = key_text(left, left.keys), key_text(versions, versions.keys)
    rows = packed(left, LEFT, _group(ours), ours, gone=F.lit(False)).unionByName(packed(versions, RIGHT, _group(theirs), theirs))
    return matched(run(rows, Newest(whole=False), MATCHED), left, versions, how)


def _group(key: Column) -> Column:
    """The group that has a key's rows; rows without a key have one, too."""
    groups = F.array(*(F.lit(group) for group in group_keys(GROUPS)))
    return F.element_at(groups, (F.pmod(F.xxhash64(key), F.lit(GROUPS)) + 1).cast("int"))


def matched(frame: DataFrame, left: Side, right: Side, how: str) -> Stream:
    """The rows of `Newest` as a stream."""
    partner = from_text(F.col("_right"), right.schema)
    return joined(frame, from_text(F.col("_left"), left.schema), partner, left, right, how)


def joined(rows: DataFrame, one: Column, other: Column, left: Side, right: Side, how: str) -> Stream:
    """Pairs at the left row's event time; rows without a right row are data or unmatched."""
    if how != "left":
        rows = kept(rows, F.col("_right").isNotNull(), Tag.UNMATCHED)
    frame = rows.select(one.alias(left.name), other.alias(right.name), F.timestamp_micros("_us").alias(TIME))
    return Stream(with_event_time(frame), timed=True)
