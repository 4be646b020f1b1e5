"""The selection of the tier executors: each way to keep state, and all that writes, runs on two executors in every run of CI.

All blocks do with ``./scripts/test --tier executors -- --all-of-spark``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from penstock.jobs.spec.app_module import STATEFUL_BLOCKS
from penstock.jobs.spec.sinks import Sink
from penstock.scripts.dev.tiers import ON_EXECUTORS

_SPARK = Path(__file__).with_name("spark")
_OTHERS = {"calls", "journal", "lookups", "side outputs"}
# By what of Spark keeps their state.
_WAYS = {
    "aggregation": {"aggregate", "top", "salted", "window_join", "co_group"},
    "deduplication": {"deduplicate"},
    "join of streams": {"interval_join"},
    "transformWithState": {"process", "connect", "pattern", "temporal_join", "regular_join", "changelog"},
    "broadcast": {"broadcast_join"},
}


def _covered() -> Iterator[str]:
    """The arguments of all markers `on_executors`."""
    for file in _SPARK.rglob("test_*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == f"pytest.mark.{ON_EXECUTORS}":
                yield from (str(ast.literal_eval(argument)) for argument in node.args)


def test_every_way_to_keep_state_every_sink_calls_lookups_and_side_outputs_have_a_test_on_executors() -> None:
    union, _ = get_args(Sink)
    sinks = {sink.__name__.removeprefix("To").lower() for sink in get_args(union)}
    covered = set(_covered())
    assert set().union(*_WAYS.values()) == set(STATEFUL_BLOCKS)
    assert [way for way, blocks in _WAYS.items() if not blocks & covered] == []
    assert covered - set(STATEFUL_BLOCKS) == {*sinks, *_OTHERS}
