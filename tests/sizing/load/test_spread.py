"""Measured numbers with their spread, and the line through micro-batches."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from penstock.sizing.load.spread import Line, Spread, line_through

VALUES = st.lists(st.floats(1e-3, 1e6), min_size=1, max_size=40)


def test_quartiles_are_those_of_the_inclusive_method_and_few_values_give_their_ends() -> None:
    assert Spread.of([4, 1, 3, 2, 5]) == Spread(low=2, typical=3, high=4)
    assert Spread.of([3, 1, 2]) == Spread(low=1, typical=2, high=3)
    assert Spread.of([7]) == Spread.exactly(7)


@pytest.mark.parametrize("numbers", [(2, 1, 3), (1, 3, 2), (-1, 1, 2)])
def test_a_spread_out_of_order_or_below_zero_is_rejected(numbers: tuple[float, float, float]) -> None:
    low, typical, high = numbers
    with pytest.raises(ValidationError):
        Spread(low=low, typical=typical, high=high)


@given(values=VALUES)
def test_a_spread_lies_between_the_ends_of_its_values_and_its_inverse_is_that_of_the_ends(values: list[float]) -> None:
    found = Spread.of(values)
    assert min(values) <= found.low <= found.typical <= found.high <= max(values)
    assert found.inverse().inverse().typical == pytest.approx(found.typical)


@given(
    fixed=st.floats(0.01, 5),
    per_row=st.floats(1e-6, 1e-2),
    rows=st.lists(st.integers(1_000, 1_000_000), min_size=8, max_size=30, unique=True),
    seed=st.integers(0, 1_000),
)
def test_the_line_is_found_again_through_noise_and_disturbed_micro_batches(
    fixed: float, per_row: float, rows: list[int], seed: int
) -> None:
    noise = random.Random(seed)
    points = [(float(count), (fixed + per_row * count) * noise.uniform(0.98, 1.02)) for count in rows]
    # One in ten is disturbed: it took ten times as long.
    for number in noise.sample(range(len(points)), len(points) // 10):
        points[number] = (points[number][0], points[number][1] * 10)
    line = line_through(points)
    most = max(rows)
    assert line.fixed + line.per_row * most == pytest.approx(fixed + per_row * most, rel=0.15)


@given(fixed=st.floats(0, 5), per_row=st.floats(1e-6, 1), rows=st.lists(st.integers(1, 10**6), min_size=2, max_size=20, unique=True))
def test_the_line_through_points_without_noise_is_exact(fixed: float, per_row: float, rows: list[int]) -> None:
    line = line_through([(float(count), fixed + per_row * count) for count in rows])
    at = max(rows)
    assert line.fixed + line.per_row * at == pytest.approx(fixed + per_row * at, rel=1e-6)


def test_micro_batches_of_one_size_have_no_fixed_part_and_neither_has_one_below_zero() -> None:
    assert line_through([(100.0, 2.0), (100.0, 4.0), (100.0, 3.0)]) == Line(0.0, 0.03)
    below = line_through([(100.0, 1.0), (200.0, 3.0)])
    assert below.fixed == 0.0
    assert below.per_row == pytest.approx(0.0125)
