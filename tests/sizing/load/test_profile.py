"""A measured profile."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from penstock.sizing.load.profile import Profile
from tests.sizing.load.loads import profiles


def profile(*points: tuple[int, float]) -> Profile:
    return Profile.model_validate({"points": [{"slots": slots, "eventsPerSecond": rate} for slots, rate in points]})


@pytest.mark.parametrize(("slots", "rate"), [(1, 50), (2, 100), (3, 140), (4, 180), (6, 260), (8, 340)])
def test_rates_lie_on_straight_lines_through_the_points(slots: int, rate: float) -> None:
    assert profile((2, 100), (4, 180)).events_per_s(slots) == pytest.approx(rate)


def test_a_slot_beyond_the_points_adds_no_more_than_those_before_it_did() -> None:
    assert profile((2, 100), (4, 400)).events_per_s(6) == pytest.approx(600)


def test_a_point_that_lies_lower_than_one_before_it_counts_as_that_one() -> None:
    disturbed = profile((2, 100), (4, 90), (8, 200))
    assert [disturbed.events_per_s(slots) for slots in (3, 4)] == [100, 100]


def test_a_profile_that_no_longer_rises_does_not_rise_beyond_its_points() -> None:
    assert profile((2, 100), (4, 100)).events_per_s(1000) == 100


@pytest.mark.parametrize("points", [(), ((2, 1.0), (2, 2.0)), ((3, 1.0), (2, 2.0)), ((1, 0.0),)])
def test_points_without_order_or_rate_are_rejected(points: tuple[tuple[int, float], ...]) -> None:
    with pytest.raises(ValidationError):
        profile(*points)


@given(measured=profiles(), slots=st.integers(1, 5000))
def test_more_slots_never_process_less(measured: Profile, slots: int) -> None:
    assert measured.events_per_s(slots + 1) >= measured.events_per_s(slots) * (1 - 1e-12) > 0
