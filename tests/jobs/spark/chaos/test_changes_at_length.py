"""Changes of a key's aggregates: the same whatever the micro-batches, in the order of event time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from penstock.jobs.blocks.changes import changelog
from tests.jobs.spark.blocks import Input, row, run
from tests.jobs.spark.running import Surroundings

FIRST = [row("3", user="bob", n=1), row("1", user="ann", n=1), row("2", user="bob", n=2)]
THEN = [row("11", user="ann", n=2), row("12", user="ann", n=0), row("13", user="bob", n=None)]
END = [row("60", user="eve", n=0)]
OF_USERS = {"ann": "+I 1 -U 1 +U 3", "bob": "+I 2 -U 2 +U 3"}


# A query each: of one with three changelogs Spark starts more Python workers at once than a busy machine connects within its ten seconds.
@pytest.mark.parametrize(
    ("batches", "keys", "expected"),
    [
        ([[*THEN, *FIRST], [], END], ["user"], OF_USERS),
        ([FIRST, THEN, END], ["user"], OF_USERS),
        ([[FIRST[0]], [*FIRST[1:], *THEN], END], [], {"all": "+I 1 -U 1 +U 3 -U 3 +U 4 -U 4 +U 6"}),
    ],
    ids=["once", "thrice", "without keys"],
)
def test_changes_do_not_depend_on_the_micro_batches(
    surroundings: Surroundings, batches: list[list[dict[str, Any]]], keys: list[str], expected: Mapping[str, str]
) -> None:
    # Rows of the second micro-batch are not late by it.
    inputs = {"rows": Input("user STRING, n INT", batches, bound_s=20)}
    changes: dict[str, list[str]] = {}
    for one in run(surroundings, inputs, lambda streams: changelog(streams["rows"], keys=keys, total="sum(n)")).rows:
        changes.setdefault(one.get("user", "all"), []).append(f"{one['_op']} {one['total']}")
    # Rows of one key come in their order.
    assert {key: " ".join(ops) for key, ops in changes.items()} == expected
