"""A block of each kind with state, each on an input of its own; the results in one output."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pyspark.sql import Row

from penstock import (
    Job,
    Key,
    KeyedFunction,
    Side,
    Stream,
    Tag,
    aggregate,
    deduplicate,
    interval_join,
    process,
    regular_join,
    session,
    temporal_join,
    tumbling,
    union,
    value,
)

SCHEMA = "at STRING NOT NULL, key STRING NOT NULL, name STRING NOT NULL"


# When a row's timer is due, in milliseconds of event time after it.
TIMER_MS = 20_000


class Counted(KeyedFunction):
    """The number of each row of a key: a row that is counted twice, or a state that is lost, changes all later numbers.

    Each row has a timer, which is due once.
    """

    def on_row(self, row: Row, key: Key) -> Iterator[Mapping[str, Any]]:
        assert key.time_ms is not None
        number = (key.value("rows").get() or 0) + 1
        key.value("rows").set(number)
        key.set_timer(key.time_ms + TIMER_MS)
        yield {"name": f"{row.name}#{number}"}

    def on_timer(self, time_ms: int, key: Key) -> Iterator[Mapping[str, Any]]:
        yield {"name": f"{key.values['key']}:{(time_ms - TIMER_MS) // 1000}"}


def _windows(job: Job) -> Stream:
    rows = aggregate(job.source("windows", SCHEMA), tumbling("10s"), keys=["key"], names="array_join(array_sort(collect_list(name)), ' ')")
    return rows.select(name="concat(key, ': ', names)")


def _sessions(job: Job) -> Stream:
    rows = aggregate(job.source("sessions", SCHEMA), session("3s"), keys=["key"], names="array_join(array_sort(collect_list(name)), ' ')")
    return rows.select(name="concat(key, ': ', names)")


def _duplicates(job: Job) -> Stream:
    return deduplicate(job.source("duplicates", SCHEMA), ["name"], within="1m").select(name="name")


def _pairs(job: Job) -> Stream:
    a, b = Side("a", job.source("left", SCHEMA), "key"), Side("b", job.source("right", SCHEMA), "key")
    return interval_join(a, b, lower="-60s", upper="60s").select(name="concat(a.name, '+', b.name)")


def _counted(job: Job) -> Stream:
    return process(job.source("steps", SCHEMA), ["key"], Counted(), output="name STRING", state={"rows": value("bigint")}).select(
        name="name"
    )


def _versions(job: Job) -> Stream:
    p, v = Side("p", job.source("priced", SCHEMA), "key"), Side("v", job.source("prices", SCHEMA), "key")
    return temporal_join(p, v).select(name="concat(p.name, '@', v.name)")


def _tables(job: Job) -> Stream:
    u, t = Side("u", job.source("users", SCHEMA), "key", unique="key"), Side("t", job.source("tiers", SCHEMA), "key", unique="key")
    return regular_join(u, t, emit="changes").select(name="concat(_op, u.name, '=', t.name)")


# Block -> its sources.
BLOCKS: dict[str, tuple[str, ...]] = {
    "windows": ("windows",),
    "sessions": ("sessions",),
    "duplicates": ("duplicates",),
    "pairs": ("left", "right"),
    "steps": ("steps",),
    "versions": ("priced", "prices"),
    "tables": ("users", "tiers"),
}
_BUILDERS: dict[str, Callable[[Job], Stream]] = {
    "windows": _windows,
    "sessions": _sessions,
    "duplicates": _duplicates,
    "pairs": _pairs,
    "steps": _counted,
    "versions": _versions,
    "tables": _tables,
}


def build(job: Job) -> None:
    blocks = [name for name, sources in BLOCKS.items() if sources[0] in job.spec.spec.sources]
    rows = [_BUILDERS[name](job).select(block=f"'{name}'", name="name") for name in blocks]
    job.write(union(*rows) if len(rows) > 1 else rows[0], "out")
    job.side_output("errors")
    job.side_output("late", Tag.LATE)
