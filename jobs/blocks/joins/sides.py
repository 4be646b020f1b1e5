"""The sides of a join, and how their rows are packed so that columns of the same name do not clash."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Literal

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from penstock.jobs.stream.columns import Expression
from penstock.jobs.stream.leaving import kept
from penstock.jobs.stream.streams import Stream, Tag

How = Literal["inner", "left", "full"]

# The field that marks a row as the deletion of its key, as sources set it for tombstones.
DELETED = "_deleted"


@dataclass(frozen=True)
class Side:
    """One input of a join.

    Args:
        name: the name of its struct in the result.
        stream: its rows.
        key: the join field, or several. A row with a null in its key has no match, as in SQL.
        unique: for a `regular_join`: the fields that identify a row of a table, so that a later row with the same values replaces it;
            None: every row is an additional row.
        order: if later rows replace earlier ones: an integer expression, as SQL or a Column, that orders rows with the same event time,
            such as ``meta.offset``; None: which of several rows with one key and one event time is the last is unspecified, but a replay
            picks the same.
    """

    name: str
    stream: Stream
    key: str | Sequence[str]
    unique: str | Sequence[str] | None = None
    order: Expression | None = None

    @property
    def keys(self) -> tuple[str, ...]:
        """The fields of the key."""
        return names(self.key)

    @property
    def fields(self) -> list[str]:
        """The fields of its rows in the result: all except the deletion mark."""
        return [name for name in self.stream.fields if name != DELETED]

    @property
    def schema(self) -> StructType:
        """The schema of these fields."""
        schema = self.stream.frame.schema
        return StructType([schema[name] for name in self.fields])

    def key_column(self) -> Column:
        """The key as one column; null if a part of it is."""
        if len(self.keys) == 1:
            return F.col(self.keys[0])
        return F.when(self.has_key(), F.struct(*(F.col(name).alias(f"k{number}") for number, name in enumerate(self.keys))))

    def has_key(self) -> Column:
        """Whether no part of the key is null."""
        return reduce(Column.__and__, (F.col(name).isNotNull() for name in self.keys))

    def key_schema(self) -> StructType:
        """The types of the key's parts, by position."""
        schema = self.stream.frame.schema
        schema_of_key = StructType()
        for number, name in enumerate(self.keys):
            schema_of_key = schema_of_key.add(f"k{number}", schema[name].dataType)
        return schema_of_key


def names(given: str | Sequence[str]) -> tuple[str, ...]:
    """One name or several as a tuple."""
    return (given,) if isinstance(given, str) else tuple(given)


def check(left: Side, right: Side) -> None:
    """Checks that two sides can be joined by event time.

    Raises:
        ValueError: two sides with the same name, one without event time or with updates, or incompatible keys.
    """
    for side in (left, right):
        check_one(side)
        missing = [name for name in (*side.keys, *names(side.unique or ())) if name not in side.stream.fields]
        if missing:
            raise ValueError(f"{side.name} has no field {', '.join(missing)}; it has {', '.join(side.stream.fields)}")
    if left.name == right.name:
        raise ValueError(f"both sides are named {left.name}; use different names")
    ours, theirs = ([field.dataType.simpleString() for field in side.key_schema().fields] for side in (left, right))
    if ours != theirs:
        raise ValueError(f"key types differ: {left.name} has {', '.join(ours)}, {right.name} has {', '.join(theirs)}; cast one side")


def check_one(side: Side) -> None:
    """Raises ValueError for a side without event time, or whose rows replace earlier ones."""
    if not side.stream.timed:
        raise ValueError(f"{side.name} has no event time; set `time` of its source in the spec")
    if side.stream.updates:
        raise ValueError(f"{side.name} contains updates of earlier rows, which would be joined again; join final results")


def check_how(how: str, allowed: Sequence[str]) -> None:
    """Raises ValueError for an unknown kind of join."""
    if how not in allowed:
        raise ValueError(f'how = "{how}": must be one of {", ".join(allowed)}')


def deleted(stream: Stream) -> Column:
    """Whether a row is the deletion of its key."""
    return F.coalesce(F.col(DELETED), F.lit(False)) if DELETED in stream.fields else F.lit(False)


def without_partner(side: Side) -> Stream:
    """The side's stream without its rows that have no key, which are counted as unmatched, for joins that cannot emit them."""
    return side.stream.transform(lambda frame: kept(frame, side.has_key(), Tag.UNMATCHED))
