"""Windows in plain Python, by times at their edges."""

from __future__ import annotations

import pytest

from penstock.jobs.local import windows


@pytest.mark.parametrize(("time_ms", "window"), [(0, (0, 10)), (9, (0, 10)), (10, (10, 20)), (-1, (-10, 0))])
def test_a_tumbling_window_has_its_start_and_not_its_end(time_ms: int, window: tuple[int, int]) -> None:
    assert list(windows.tumbling(time_ms, 10)) == [window]


def test_a_time_is_in_every_sliding_window_that_covers_it() -> None:
    assert list(windows.sliding(25, 20, 10)) == [(20, 40), (10, 30)]
    assert list(windows.sliding(30, 20, 10)) == [(30, 50), (20, 40)]


def test_windows_that_grow_hold_a_time_from_the_step_after_it_on() -> None:
    assert list(windows.cumulative(25, 30, 10)) == [(0, 30)]
    assert list(windows.cumulative(30, 30, 10)) == [(30, 40), (30, 50), (30, 60)]
    assert list(windows.cumulative(49, 30, 10)) == [(30, 50), (30, 60)]


def test_a_session_ends_a_gap_after_its_last_event_and_one_a_whole_gap_later_begins_another() -> None:
    events = [("b", 5), ("a", 19), ("a", 0), ("a", 10), ("a", 29), ("a", 28)]
    assert sorted(windows.sessions(events, 10)) == [("a", 0, 10, 1), ("a", 10, 39, 4), ("b", 5, 15, 1)]


def test_times_are_written_as_sparks_json_has_them() -> None:
    assert windows.written(1_743_854_400_007) == "2025-04-05T12:00:00.007Z"
    assert windows.written(-1) == "1969-12-31T23:59:59.999Z"
