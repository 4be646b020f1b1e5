"""One input through a call and a deduplication, written to sinks of every kind that loses and doubles nothing.

Each call is answered differently: all sinks must have the same answer, however often a task runs.
"""

from __future__ import annotations

import uuid
from typing import Any

from penstock import Job, Tag, call, deduplicate

SINKS = ("out", "whole", "topic", "table", "hashes")


def answered(row: dict[str, Any], key: str) -> dict[str, Any]:
    """Another answer at each call."""
    return {"answer": uuid.uuid4().hex}


def build(job: Job) -> None:
    rows = job.source("a", "at STRING NOT NULL, name STRING NOT NULL, number BIGINT NOT NULL")
    asked = call(rows, answered, name="ask", key="name", result="answer STRING NOT NULL")
    once = deduplicate(asked, ["name"], within="1m")
    job.write(once.select(name="name", number="number", answer="answer"), {name: None for name in job.spec.spec.sinks if name in SINKS})
    job.side_output("errors")
    job.side_output("late", Tag.LATE)
    job.side_output("failed", Tag.FAILED)
