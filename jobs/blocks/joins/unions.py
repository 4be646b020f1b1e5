"""Unions of streams with the same fields."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import DataFrame

from penstock.jobs.stream.streams import ENVELOPE, Stream


def union(first: Stream, *others: Stream) -> Stream:
    """All rows of several streams, as in Flink's union; fields are matched by name.

    The current watermark is the minimum of all inputs, so a silent input holds back the others unless it has an idleness.

    Raises:
        ValueError: streams with different fields or types, or some with event time and some without.
    """
    for number, other in enumerate(others, start=2):
        ours, theirs = _types(first), _types(other)
        if ours != theirs:
            differing = sorted({name for name, _ in ours.items() ^ theirs.items()})
            raise ValueError(
                f"stream {number} differs from the first one in {', '.join(differing)}; select and cast columns before the union"
            )
        if other.timed != first.timed:
            has = "has" if other.timed else "has no"
            raise ValueError(f"stream {number} {has} event time, unlike the first one; set `time` for both sources, or for neither")
    streams = (first, *others)
    columns = [*first.fields, *ENVELOPE]
    frame = reduce(DataFrame.unionByName, (stream.frame.select(*columns) for stream in streams))
    updates = any(stream.updates for stream in streams)
    return Stream(frame, timed=first.timed, updates=updates)


def _types(stream: Stream) -> dict[str, str]:
    schema = stream.frame.schema
    return {name: schema[name].dataType.simpleString() for name in stream.fields}
