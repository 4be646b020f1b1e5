"""A source that is faster than its sink: the engine takes no more of it than it was told to, the rest waits in the topic."""

from __future__ import annotations

from typing import Any

from tests.jobs.spark.apps import gated
from tests.jobs.spark.running import Surroundings

AT_ONCE = 10


def _rows(begin: int, end: int) -> list[dict[str, Any]]:
    return [{"key": f"row-{number:02d}", "at": f"2025-04-05T10:00:{number:02d}Z"} for number in range(begin, end)]


def test_a_source_faster_than_its_sink_is_held_back_and_nothing_but_the_lag_grows(surroundings: Surroundings) -> None:
    job = surroundings.job("tests.jobs.spark.apps.gated", sources={"a": 1})
    job.edit(lambda spec: spec["sources"]["a"]["kafka"].update(maxOffsetsPerTrigger=AT_ONCE))
    job.edit(lambda spec: spec["sinks"].update(slow={"function": {"name": "slow"}}))
    job.feed("a", *_rows(0, 20))
    with job.running() as running:
        # While the sink has one micro-batch in its hands, twice as much comes as it takes.
        for fed in (20, 40):
            gated.entered.get(timeout=120)
            job.feed("a", *_rows(fed, fed + 20))
            gated.let.release()
        gated.let.release(4)
        running.until_read({"a": [60]})
    committed = running.committed
    assert [batch["rows"] for batch in committed] == [AT_ONCE] * 6
    assert [batch["lagRecords"] for batch in committed] == [10, 20, 30, 20, 10, 0]
    assert [row["key"] for row in job.rows()] == [row["key"] for row in _rows(0, 60)]
