"""Patterns compared with an exhaustive search."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.types import ArrayType, BooleanType, IntegerType, LongType, StructField, StructType, TimestampType

from penstock.jobs.blocks.keyed.declared import TypedState
from penstock.jobs.blocks.keyed.pattern import _Matcher
from penstock.jobs.blocks.keyed.values import milliseconds
from tests.jobs.blocks.keyed.running import Ran, cut

ROW = StructType([StructField("letter", IntegerType())])
BEGUN = StructType([StructField("length", IntegerType()), StructField("first_ms", LongType()), StructField("rows", ArrayType(ROW))])


def _searched(letters: list[int], times: list[int], places: list[tuple[int, bool]], within: int) -> list[tuple[int, int]]:
    """First and last time of each match: for each row in turn, all choices of rows since the previous match are tried."""
    searched, begin = [], 0
    for last in range(len(letters)):
        if letters[last] == 3:
            begin = last + 1
        best: int | None = None
        for chosen in combinations(range(begin, last + 1), len(places)):
            fits = all(letters[at] == step for at, (step, _) in zip(chosen, places, strict=True))
            follows = all(not place[1] or one + 1 == other for one, other, place in zip(chosen, chosen[1:], places[1:], strict=False))
            if chosen[-1] == last and fits and follows and times[last] - times[chosen[0]] <= within:
                best = max(best or 0, times[chosen[0]])
        if best is not None:
            searched.append((best, times[last]))
            begin = last + 1
    return searched


@settings(max_examples=300)
@given(
    rows=st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3)), max_size=11),
    steps=st.lists(st.tuples(st.integers(0, 2), st.integers(1, 2), st.booleans()), min_size=1, max_size=3),
    within=st.integers(1, 12),
    sizes=st.lists(st.integers(1, 5), min_size=1, max_size=3),
)
def test_matches_are_those_that_a_search_finds(
    rows: list[tuple[int, int]], steps: list[tuple[int, int, bool]], within: int, sizes: list[int]
) -> None:
    letters = [letter for letter, _ in rows]
    times = [sum(gap for _, gap in rows[: at + 1]) for at in range(len(rows))]
    # Step i matches its letter; the letter 3 cancels a partial match.
    conditions = {f"_is_{number}": BooleanType() for number in range(len(steps))}
    places = [(letter, follows) for letter, count, follows in steps for _ in range(count)]
    matcher = _Matcher(("letter",), tuple((f"s{n}", count, follows) for n, (_, count, follows) in enumerate(steps)), within)
    output = {"first_time": TimestampType(), "last_time": TimestampType(), **{f"s{n}": ArrayType(ROW) for n in range(len(steps))}}
    state = {"begun": TypedState("value", ArrayType(BEGUN), LongType())}
    fields = {"letter": IntegerType(), **conditions, "_ends": BooleanType()}
    ran = Ran(matcher, fields, output, state, order="time", ttl_ms=within + 1)
    data = [
        (time, {"letter": letter, **{f"_is_{n}": letter == step for n, (step, _, _) in enumerate(steps)}, "_ends": letter == 3})
        for time, letter in zip(times, letters, strict=True)
    ]
    for chunk in cut(data, sizes):
        ran.rows(*chunk).watermark(chunk[-1][0])
    assert [(milliseconds(one["first_time"]), milliseconds(one["last_time"])) for one in ran.out] == _searched(
        letters, times, places, within
    )
    assert all([len(one[f"s{n}"]) for n in range(len(steps))] == [count for _, count, _ in steps] for one in ran.out)
    ran.watermark(10_000)
    assert ran.tester.peekValueState("begun", "one") is None
