"""Kinds of windows and aggregates as they are declared; no Spark is started."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from penstock.jobs.blocks.windows import count_window, cumulative, global_window, session, sliding, tumbling
from penstock.jobs.blocks.windows.calls import FOLDABLE, SPLITTABLE, Call, calls
from penstock.jobs.blocks.windows.kinds import Cumulative, Global, Session, Sliding, Tumbling


@pytest.mark.parametrize(
    ("window", "declared"),
    [
        (tumbling("5m"), Tumbling(300_000)),
        (tumbling("1d", offset="-330m"), Tumbling(86_400_000, -19_800_000)),
        (sliding("10m", every="1m", offset="30s"), Sliding(600_000, 60_000, 30_000)),
        (session("30m"), Session(1_800_000)),
        (cumulative("1d", step="1h"), Cumulative(86_400_000, 3_600_000)),
        (count_window(3), Global(rows=3, purge=True)),
        (count_window(10, every=2), Global(rows=2, last=10)),
        (global_window(every="1m", purge=True), Global(every_ms=60_000, purge=True)),
    ],
)
def test_a_window_is_declared_by_durations_and_numbers(window: object, declared: object) -> None:
    assert window == declared


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: tumbling("5"), 'size = "5": expected'),
        (lambda: tumbling("5m", offset="5m"), "offset = 5m: must be less than"),
        (lambda: tumbling("5m", offset="x"), 'offset = "x": expected'),
        (lambda: sliding("1m", every="2m"), "every = 2m is greater than size = 1m"),
        (lambda: cumulative("10m", step="3m"), "size = 10m is not a multiple of step = 3m"),
        (lambda: session("0s"), 'gap = "0s": expected'),
        (lambda: count_window(0), "size = 0"),
        (lambda: count_window(3, every=4), "every = 4"),
        (lambda: global_window(rows=1, every="1m"), "mutually exclusive"),
        (lambda: global_window(rows=0), "rows = 0"),
        (lambda: global_window(purge=True), "requires a trigger"),
    ],
)
def test_an_invalid_window_is_rejected_with_the_reason(wrong: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        wrong()


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("count(*)", ("count", "1")),
        (" SUM ( amount * (1 + vat) ) ", ("sum", "amount * (1 + vat)")),
        ("mean(x)", ("avg", "x")),
        ("max(coalesce(a, b))", ("max", "coalesce(a, b)")),
        ("min(concat(a, ',)'))", ("min", "concat(a, ',)')")),
        ("sum(list[0])", ("sum", "list[0]")),
    ],
)
def test_an_aggregate_of_one_expression_is_known(text: str, call: tuple[str, str]) -> None:
    assert calls({"n": text}, SPLITTABLE) == [Call("n", *call)]


@pytest.mark.parametrize(
    "text",
    [
        "sum(a) + sum(b)",
        "count(distinct a)",
        "count(a, b)",
        "sum(*)",
        "sum()",
        "amount",
        "collect_list(a)",
        "first(a)",
        "sum(a))",
        "",
        "sum((a)",
    ],
)
def test_an_aggregate_that_can_not_be_split_is_rejected_with_those_that_can(text: str) -> None:
    with pytest.raises(ValueError, match=r"n = .* is not one of count\(...\), sum\(...\), min"):
        calls({"n": text}, SPLITTABLE)
    assert calls({"n": "first(a)"}, FOLDABLE) == [Call("n", "first", "a")]
