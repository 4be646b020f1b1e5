"""What the tasks of a micro-batch have counted, summed by operator."""

from __future__ import annotations

from typing import Any

from penstock.jobs.stream.leaving import Passed, TagCount

LEAST = -(2**63)


def _task(operator: str, partition: int, rows: int, staged: str | None = None, **counted: Any) -> dict[str, Any]:
    return {
        "run": "run",
        "batch": 3,
        "operator": operator,
        "partition": partition,
        "rows": rows,
        "splits": {},
        "tags": {},
        "staged": staged,
        **counted,
    }


def _split(rows: int, greatest_ms: int = LEAST) -> dict[str, int]:
    return {"rows": rows, "greatestMs": greatest_ms}


def _tag(rows: int, unlocated: int = 0, kept: bool = False) -> dict[str, Any]:
    return {"rows": rows, "unlocated": unlocated, "kept": kept}


def test_tasks_of_an_operator_are_added_up() -> None:
    tasks = [
        _task("0/events", 0, 5, splits={"0": _split(3, 100), "1": _split(2)}, tags={"late": _tag(1, kept=True)}),
        _task("0/events", 1, 4, "s3a://b/1.json", splits={"0": _split(1, 200), "2": _split(3, 50)}, tags={"late": _tag(2, 1)}),
        _task("1/", 0, 2, tags={"late": _tag(1), "own": _tag(1)}),
    ]
    passed = Passed.summed(tasks)
    assert passed.splits["events"] == {0: (4, 200), 1: (2, None), 2: (3, 50)}
    assert passed.rows == {"events": 9, "": 2}
    assert passed.tags == {"events": {"late": TagCount(3, 1, kept=True)}, "": {"late": TagCount(1), "own": TagCount(1)}}
    assert passed.by_tag() == {"late": TagCount(4, 1, kept=True), "own": TagCount(1)}
    assert passed.staged == ("s3a://b/1.json",)


def test_rows_that_another_query_writes_are_apart() -> None:
    tasks = [_task("0/events", 0, 5, tags={"late": _tag(2)}), _task("1/events", 0, 5, splits={"0": _split(5, 9)}, tags={"late": _tag(2)})]
    passed = Passed.summed(tasks, frozenset({0}))
    assert (passed.rows, passed.tags, passed.of_others) == (
        {"events": 5},
        {"events": {"late": TagCount(2)}},
        {"events": {"late": TagCount(2)}},
    )
    assert passed.tagged("events", "late") == 4
    assert passed.splits == {"events": {0: (5, 9)}}


def test_all_rows_of_an_operator_with_a_tag_of_its_own_have_it() -> None:
    assert Passed.summed([_task("4/,tag filtered", 0, 3), _task("4/,tag filtered", 1, 4)]).by_tag() == {"filtered": TagCount(7)}


def test_no_tasks_have_counted_nothing() -> None:
    assert Passed.summed([]) == Passed()
