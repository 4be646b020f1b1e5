"""The remedy for a hot key: its rows are spread over several tasks, each aggregates its share, and a second step merges the partial
results.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F

from penstock.jobs.blocks.keyed.content import content_hash
from penstock.jobs.blocks.windows.aggregation import check, unfolded
from penstock.jobs.blocks.windows.calls import SPLITTABLE, Call, calls
from penstock.jobs.blocks.windows.kinds import TimeWindow
from penstock.jobs.stream.event_time.engine import with_one_event_time
from penstock.jobs.stream.streams import TIME, Stream


def salted(stream: Stream, window: TimeWindow, /, *, keys: Sequence[str] = (), salts: int = 8, **aggregates: str | Column) -> Stream:
    """`aggregate` in two steps, with the same result: a key's rows go to up to `salts` tasks instead of one.

    Spark's own aggregation already combines a task's rows of a key before the shuffle, so a hot key costs one row per task and
    micro-batch there. This is for the remaining cases: few tasks read and many aggregate, or a row is in many windows. It costs a second
    stateful operator, and up to `salts` states for each key and window.

    Args:
        stream: rows with event time.
        window: any except sessions, which merge.
        keys: as for `aggregate`; without keys, what one task would compute is spread over several.
        salts: shares of a key, 2 to 1024. A row's share follows from its content, so that a replay distributes it alike.
        aggregates: name -> count, sum, min, max or avg of one expression: what can be merged from partial results.

    Returns:
        As `aggregate`, with the same rows.

    Raises:
        ValueError: as `aggregate`; an aggregate that cannot be merged from partial results; sessions; salts out of range.
    """
    check(stream, window, keys, aggregates, "final")
    if window.mergeable:
        raise ValueError(
            "a session window cannot be split: whether two rows share a session depends on the rows between them; use aggregate"
        )
    if not 2 <= salts <= 1024:
        raise ValueError(f"salts = {salts}: must be from 2 to 1024")
    split = calls(aggregates, SPLITTABLE)
    data = with_one_event_time(stream.frame)
    types = [call.result_type(data) for call in split]
    salt = F.pmod(content_hash(data, [*stream.fields, TIME]), F.lit(salts))
    frame, column = window.assigned(data.withColumn("_salt", salt))
    parts = frame.groupBy(*keys, "_salt", column.alias("_window")).agg(*(part for call in split for part in _parts(call)))
    merged = parts.groupBy(*keys, "_window").agg(*(part for call in split for part in _merged(call)))
    whole = merged.select(*keys, "_window", *(call.put_together(type_) for call, type_ in zip(split, types, strict=True)))
    return Stream(unfolded(whole, keys, list(aggregates)), timed=True)


def _parts(call: Call) -> list[Column]:
    function = {"avg": "sum", "count": "count"}.get(call.function, call.function)
    return [call.by(function).alias(call.value), call.by("count").alias(call.count)]


def _merged(call: Call) -> list[Column]:
    function = call.function if call.function in ("min", "max") else "sum"
    return [F.expr(f"{function}({call.value})").alias(call.value), F.sum(call.count).alias(call.count)]
