"""The interval join: rows with the same key whose event times are close."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import TimestampType

from penstock.jobs.blocks.joins.sides import How, Side, check_how, check_one
from penstock.jobs.stream.columns import Expression, as_column
from penstock.jobs.stream.event_time.engine import with_event_time, with_one_event_time
from penstock.jobs.stream.streams import TIME, Stream
from penstock.sizing.units import NotAQuantity, duration_ms, is_no_duration

_SPARK_HOW = {"inner": "inner", "left": "left_outer", "full": "full_outer"}


def interval_join(
    left: Side,
    right: Side,
    *,
    lower: str,
    upper: str,
    between: tuple[Expression, Expression] | None = None,
    how: How = "inner",
    hot_keys: bool = False,
) -> Stream:
    """Joins rows with the same key whose event times are close: ``left + lower <= right <= left + upper``, both bounds inclusive.

    Every accepted row is compared with every accepted row of the other side within the bounds, whatever the micro-batch boundaries. A
    left row without a match is emitted with nulls (``left`` and ``full``) once the watermark has passed the last moment at which one could
    arrive; a right row likewise with ``full``. Rows without a match that a join does not emit are not counted: Spark drops them with
    their state.

    In RocksDB, Spark compares a row with the rows of its key within the interval. With its state in memory, and in a checkpoint of an
    earlier release, it compares it with all of the other side's rows that it keeps under its key. With ``hot_keys`` the key is extended by
    a slice of event time, twice as long as the interval: a left row lies in one slice; a right row is copied to every slice that its
    matches can lie in, 1.5 on average. There are no slices with ``full``, since a copy in one cannot know of its matches in another.

    Args:
        left: the side that the bounds are relative to.
        right: the other side.
        lower: earliest event time of the right side, such as ``-60s``.
        upper: latest, such as ``60s`` or ``+60m``.
        between: bounds that each left row has itself, both inclusive: two expressions over its fields, of type TIMESTAMP, such as
            ``("valid_from", "valid_to")``. The right row's event time is within both pairs of bounds: `lower` and `upper` say how long
            rows are kept, which columns cannot. A row with a null in one has no match.
        how: ``inner``; ``left``: left rows without a match are data; ``full``: right ones too.
        hot_keys: whether some keys have many rows in memory, so that comparing fewer of them is worth the copies. Fixed as long as the
            checkpoint is used, as the key of the state is another one.

    Returns:
        A stream with the columns `left.name` and `right.name`, each a struct of that side's fields, and the greater of both event times,
        as in Flink's interval join.

    Raises:
        ValueError: bounds that are not durations or moments, a lower bound above the upper, a side without event time, or `hot_keys` of a
            full join.
    """
    for side in (left, right):
        check_one(side)
    check_how(how, ("inner", "left", "full"))
    lower_ms, upper_ms = offset_ms(lower), offset_ms(upper)
    if lower_ms > upper_ms:
        raise ValueError(f"lower = {lower} is greater than upper = {upper}")
    if hot_keys and how == "full":
        raise ValueError('hot_keys=True is not supported with how="full": use how="left", or a finer key')
    one, other = _packed(left, "_l", _moments(left, between)), _packed(right, "_r")
    condition = F.col("_l_key") == F.col("_r_key")
    if hot_keys:
        slice_ms = 2 * max(upper_ms - lower_ms, 1_000)
        one = one.withColumn("_l_slice", _slice(F.unix_millis("_l_time"), slice_ms))
        other = other.withColumn("_r_slice", F.explode(_slices(lower_ms, upper_ms, slice_ms)))
        condition &= F.col("_l_slice") == F.col("_r_slice")
    bounds = F.expr(f"_r_time >= _l_time + interval {lower_ms} milliseconds and _r_time <= _l_time + interval {upper_ms} milliseconds")
    if between is not None:
        bounds &= F.col("_r_time").between(F.col("_l_from"), F.col("_l_to"))
    joined = one.join(other, condition & bounds, _SPARK_HOW[how])
    later = F.greatest("_l_time", "_r_time").alias(TIME)
    pairs = joined.select(F.col("_l_data").alias(left.name), F.col("_r_data").alias(right.name), later)
    return Stream(with_event_time(pairs), timed=True)


def offset_ms(text: str) -> int:
    """A bound in milliseconds: a duration with or without a sign, or 0.

    Raises:
        ValueError: anything else.
    """
    if is_no_duration(text):
        return 0
    sign = -1 if text.startswith("-") else 1
    try:
        return sign * duration_ms(text[1:] if text.startswith(("+", "-")) else text)
    except NotAQuantity as error:
        raise ValueError(f'invalid bound "{text}": expected 0 or {error.need}, optionally signed') from None


def _moments(left: Side, between: tuple[Expression, Expression] | None) -> list[Column]:
    """The bounds of each left row."""
    columns = []
    for name, expression in zip(("_l_from", "_l_to"), between or (), strict=False):
        column = as_column(expression)
        kind = _named(left).select(column.alias("bound")).schema["bound"].dataType
        if not isinstance(kind, TimestampType):
            raise ValueError(f"between {expression}: must be a TIMESTAMP, is {kind.simpleString()}")
        # Not an event time, which only one column of a row can be.
        columns.append(column.alias(name, metadata={}))
    return columns


def _named(side: Side) -> DataFrame:
    """Its rows, whose fields may be named after the side too."""
    return with_one_event_time(side.stream.frame).alias(side.name)


def _packed(side: Side, prefix: str, more: Sequence[Column] = ()) -> DataFrame:
    data = F.struct(*side.stream.fields).alias(f"{prefix}_data")
    return _named(side).select(side.key_column().alias(f"{prefix}_key"), data, F.col(TIME).alias(f"{prefix}_time"), *more)


def _slice(time_ms: Column, slice_ms: int) -> Column:
    return F.floor(time_ms / F.lit(slice_ms))


def _slices(lower_ms: int, upper_ms: int, slice_ms: int) -> Column:
    """The slices that a right row's matches can lie in."""
    first = _slice(F.unix_millis("_r_time") - upper_ms, slice_ms)
    last = _slice(F.unix_millis("_r_time") - lower_ms, slice_ms)
    return F.sequence(first, last)
