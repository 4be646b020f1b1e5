"""A job that asks for another parallelism than its checkpoint has: it says so, and runs on with the checkpoint's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.jobs.spark.running import CHECKPOINTS, Surroundings, TestedJob, asking

WARNING = "its state stays in 2 shuffle partitions, those of its checkpoint, instead of the 4 of the spec"


def _row(name: str, clock: str) -> dict[str, object]:
    return {"key": name, "at": f"2025-04-05T{clock}Z", "name": name}


def _started(job: TestedJob, partitions: int, *rows: Mapping[str, Any], end: int) -> list[Mapping[str, Any]]:
    """Runs the job until it has read up to an offset; the events `reading` of its queries."""
    job.feed("a", *rows)
    with asking(job.around.session, partitions), job.running() as running:
        running.until_read({"a": [end]})
        return [running.reading, *running.others]


def _state_partitions(surroundings: Surroundings, folder: str) -> set[str]:
    """The partitions of an operator's state, as Spark has named their folders."""
    prefix = f"{folder}/state/0/"
    pages = surroundings.s3.get_paginator("list_objects_v2").paginate(Bucket=CHECKPOINTS, Prefix=prefix, Delimiter="/")
    folders = [item["Prefix"].removeprefix(prefix).strip("/") for page in pages for item in page.get("CommonPrefixes", [])]
    return {name for name in folders if name.isdigit()}


def test_another_parallelism_than_the_checkpoints_is_said_and_the_state_stays(
    surroundings: Surroundings, capsys: pytest.CaptureFixture[str]
) -> None:
    job = surroundings.job("tests.jobs.spark.apps.counts", sources={"a": 1})
    (first,) = _started(job, 2, _row("one", "12:30:00"), _row("two", "12:30:01"), end=2)
    assert "parallelism" not in first
    assert "shuffle partitions" not in capsys.readouterr().err

    (second,) = _started(job, 4, _row("three", "12:30:02"), end=3)
    assert second["parallelism"] == {"asked": 4, "checkpoint": 2}
    assert f"WARN {job.name}: {WARNING}; set stages.stateful: 2 " in capsys.readouterr().err

    # The logs of the second run have the checkpoint's number, too.
    (third,) = _started(job, 2, _row("end", "12:31:00"), end=4)
    assert third.keys() == first.keys()
    assert "shuffle partitions" not in capsys.readouterr().err

    assert [(row["n"], row["names"]) for row in job.rows()] == [(3, "one three two")]
    assert _state_partitions(surroundings, f"{job.name}/checkpoints/1") == {"0", "1"}


@pytest.mark.chaos
def test_a_query_without_state_says_nothing_and_of_several_the_one_with_it_does(
    surroundings: Surroundings, capsys: pytest.CaptureFixture[str]
) -> None:
    job = surroundings.job("tests.jobs.spark.apps.several", sources={"a": 1}, parameters={"shape": "rows and counts"})
    other = {"files": {"path": f"{job.name}-other", "prefix": "part-", "roll": {"interval": "1ms"}}}
    job.edit(lambda spec: spec["sinks"].update(other=other, gate={"function": {"name": "gate"}}))
    _started(job, 2, _row("one", "12:30:00"), end=1)
    capsys.readouterr()
    rows, counts = _started(job, 4, _row("two", "12:31:00"), end=2)
    assert "parallelism" not in rows
    assert counts["parallelism"] == {"asked": 4, "checkpoint": 2}
    said = [line for line in capsys.readouterr().err.splitlines() if "shuffle partitions" in line]
    assert [line.split(": ")[0] for line in said] == [f"WARN {job.name}.out"]
