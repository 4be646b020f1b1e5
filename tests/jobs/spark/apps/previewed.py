"""Windows in one query, and calls in another one, of an app whose numbers a parameter multiplies."""

import urllib.request
from collections.abc import Mapping
from typing import Any

from penstock import Job, Tag, aggregate, call, tumbling


class Names:
    """Asks an endpoint for a name."""

    def __init__(self, url: str) -> None:
        self._url = url

    def __call__(self, row: Mapping[str, Any], key: str) -> dict[str, str]:
        with urllib.request.urlopen(f"{self._url}/{row['key']}", timeout=30) as answer:
            return {"name": answer.read().decode()}


def build(job: Job) -> None:
    rows = job.source("a", "key string, at string, n int").select(key="key", n=f"n * {job.parameters['factor']}")
    windows = aggregate(rows, tumbling("10s"), keys=["key"], total="sum(n)")
    job.write(windows.select(key="key", total="total", begins="window_start"), "out")
    named = call(
        rows, Names(job.connections["names"]), name="names", key="concat_ws('-', key, n)", result="name STRING NOT NULL", timeout="30s"
    )
    job.write(named.select(key="key", n="n", name="name"), "named")
    job.side_output("errors")
    job.side_output("errors", Tag.FAILED)
    job.side_output("late", Tag.LATE)


def stub(method: str, path: str, headers: Mapping[str, str], body: bytes) -> tuple[int, str]:
    """The local endpoint."""
    return 200, f"stub of {path}"
