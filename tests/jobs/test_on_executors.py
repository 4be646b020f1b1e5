"""The selection of the tier executors: something of all that keeps state or writes runs on two executors in every run of CI."""

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


def _covered() -> Iterator[str]:
    """The arguments of all markers `on_executors`."""
    for file in _SPARK.glob("test_*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == f"pytest.mark.{ON_EXECUTORS}":
                yield from (str(ast.literal_eval(argument)) for argument in node.args)


def test_every_stateful_block_every_sink_calls_lookups_and_side_outputs_have_a_test_on_executors() -> None:
    union, _ = get_args(Sink)
    sinks = {sink.__name__.removeprefix("To").lower() for sink in get_args(union)}
    assert set(_covered()) == {*STATEFUL_BLOCKS, *sinks, *_OTHERS}
