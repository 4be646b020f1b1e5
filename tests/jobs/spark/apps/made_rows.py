"""Side outputs of every kind in one sink: malformed records, diverted rows, failed calls, and those of a keyed function."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pyspark.sql import Row

from penstock import CallRefused, Job, Key, Tag, call, process


async def refuses(row: dict[str, Any], key: str) -> dict[str, Any]:
    if row["name"] == "refused":
        raise CallRefused("no such name")
    return {"answer": 1}


def complains(row: Row, key: Key) -> Iterator[Mapping[str, Any]]:
    if row.name == "alarming":
        key.side_output("alerts", "an alarm", {"name": row.name})
    yield {"name": row.name}


def build(job: Job) -> None:
    rows = job.source("a", "key STRING NOT NULL, at STRING, name STRING")
    rows = rows.divert("odd", "name = 'odd'", "'an odd row'")
    rows = call(rows, refuses, name="ask", key="concat_ws('-', key, name)", result="answer INT NOT NULL")
    job.write(process(rows, ["key"], complains, output="key STRING, name STRING"), "out")
    for tag in (Tag.QUARANTINED, Tag.FAILED, "odd", "alerts"):
        job.side_output("errors", tag)
