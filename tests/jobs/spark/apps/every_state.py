"""A query for each kind of state: windows, a stream-stream join, a keyed function with a timer, and deduplication.

Checkpoints of earlier releases were recorded with it (`tests.jobs.spark.recorded_checkpoints`): a change of it makes them useless.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from pyspark.sql import Row

from penstock import Job, Key, KeyedFunction, Side, Tag, aggregate, deduplicate, interval_join, process, tumbling, value

SCHEMA = "key STRING NOT NULL, at STRING, name STRING"


class Names(KeyedFunction):
    """The names of a key, once no row of it has come for ten seconds."""

    def on_row(self, row: Row, key: Key) -> None:
        assert key.time_ms is not None
        seen = key.value("seen").get() or {"names": "", "ends": key.time_ms + 10_000}
        key.cancel_timer(seen["ends"])
        ends = max(seen["ends"], key.time_ms + 10_000)
        key.value("seen").set({"names": f"{seen['names']}{row.name}", "ends": ends})
        key.set_timer(ends)

    def on_timer(self, time_ms: int, key: Key) -> Iterator[Mapping[str, Any]]:
        yield {"names": key.value("seen").get()["names"]}
        key.value("seen").clear()


def build(job: Job) -> None:
    a, b = job.source("a", SCHEMA), job.source("b", SCHEMA)
    job.write(aggregate(a, tumbling("10s"), keys=["key"], n="count(*)").select(key="key", n="n"), "out")
    pairs = interval_join(Side("a", a, "key"), Side("b", b, "key"), lower="-60s", upper="60s", how="left")
    job.write(pairs.select(left="a.name", right="b.name"), "pairs")
    names = process(a, ["key"], Names(), output="key string, names string", state={"seen": value("names string, ends long")}, order="time")
    job.write(names, "names")
    job.write(deduplicate(b, ["name"], within="1h").select(name="name"), "once")
    job.side_output("errors")
    job.side_output("late", Tag.LATE)
