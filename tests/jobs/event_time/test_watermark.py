"""The watermark: least over partitions and inputs, never back, idle partitions left out."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from jobs.event_time.watermark import InputTime, Seen, Watermarks, is_late

TEN_S = InputTime(bound_ms=10_000)


def _ms(clock: str) -> int:
    hours, minutes, seconds = (int(part) for part in clock.split(":"))
    return ((hours * 60 + minutes) * 60 + seconds) * 1000


def _one(greatest_ms: int | None, rows: int = 1) -> dict[int, Seen]:
    return {0: Seen(rows=rows, greatest_ms=greatest_ms)}


def test_the_seed_documents_second_example_gives_its_watermarks_and_its_two_late_events() -> None:
    # E2 12:30:10, E4 :20, E6 :30, E7 :35 give :00, :10, :20, :25; L1 (:08) after :10 and L2 (:05) after :20 are late, by the document's
    # own numbers.
    state = Watermarks()
    arrivals = [("12:30:10", "12:30:00"), ("12:30:20", "12:30:10"), ("12:30:08", "12:30:10"), ("12:30:30", "12:30:20")]
    arrivals += [("12:30:05", "12:30:20"), ("12:30:35", "12:30:25")]
    late = []
    for event, watermark in arrivals:
        if is_late(_ms(event), state.in_force_ms):
            late.append(event)
        state = state.advance({"e": TEN_S}, {"e": _one(_ms(event))}, now_ms=0)
        assert state.in_force_ms == _ms(watermark), event
    assert late == ["12:30:08", "12:30:05"]


def test_an_event_as_old_as_the_watermark_is_not_late() -> None:
    assert not is_late(5, 5)
    assert is_late(4, 5)
    assert not is_late(4, None)


def test_the_slowest_partition_holds_the_watermark() -> None:
    seen = {"e": {0: Seen(rows=9, greatest_ms=100_000), 1: Seen(rows=1, greatest_ms=30_000)}}
    assert Watermarks().advance({"e": TEN_S}, seen, now_ms=0).in_force_ms == 20_000


def test_a_partition_that_was_never_heard_of_holds_the_watermark_back() -> None:
    seen = {"e": {0: Seen(rows=9, greatest_ms=100_000), 1: Seen(rows=0)}}
    assert Watermarks().advance({"e": TEN_S}, seen, now_ms=0).in_force_ms is None


def test_of_two_inputs_the_least_counts() -> None:
    times = {"a": TEN_S, "b": InputTime(bound_ms=1_000)}
    state = Watermarks().advance(times, {"a": _one(50_000), "b": _one(42_000)}, now_ms=0)
    assert state.inputs == {"a": 40_000, "b": 41_000}
    assert state.in_force_ms == 40_000


def test_an_idle_partition_is_left_out_and_takes_part_again_when_it_returns() -> None:
    times = {"e": InputTime(bound_ms=0, idleness_ms=120_000)}
    state = Watermarks().advance(times, {"e": {0: Seen(rows=1, greatest_ms=1_000), 1: Seen(rows=1, greatest_ms=1_000)}}, now_ms=0)
    fast = {0: Seen(rows=1, greatest_ms=500_000), 1: Seen(rows=0)}
    assert state.advance(times, {"e": fast}, now_ms=119_999).in_force_ms == 1_000
    left_out = state.advance(times, {"e": fast}, now_ms=120_000)
    assert left_out.in_force_ms == 500_000
    back = left_out.advance(times, {"e": {0: Seen(rows=1, greatest_ms=900_000), 1: Seen(rows=1, greatest_ms=600_000)}}, now_ms=130_000)
    assert back.in_force_ms == 600_000


def test_an_idle_input_does_not_hold_back_the_other() -> None:
    times = {"a": InputTime(bound_ms=0, idleness_ms=10), "b": InputTime(bound_ms=0, idleness_ms=10)}
    state = Watermarks().advance(times, {"a": _one(5), "b": _one(5)}, now_ms=0)
    assert state.advance(times, {"a": _one(70), "b": _one(None, rows=0)}, now_ms=10).in_force_ms == 70


def test_the_watermark_stands_while_all_is_idle() -> None:
    times = {"a": InputTime(bound_ms=0, idleness_ms=10)}
    state = Watermarks().advance(times, {"a": _one(5)}, now_ms=0)
    assert state.advance(times, {"a": _one(None, rows=0)}, now_ms=99).in_force_ms == 5


def test_a_new_partition_counts_as_active_from_when_it_shows_up() -> None:
    times = {"a": InputTime(bound_ms=0, idleness_ms=10)}
    state = Watermarks().advance(times, {"a": _one(5)}, now_ms=0)
    grown = {0: Seen(rows=1, greatest_ms=50), 1: Seen(rows=0)}
    assert state.advance(times, {"a": grown}, now_ms=100).in_force_ms == 5


_moments = st.one_of(st.none(), st.integers(0, 10**6))
_batches = st.lists(st.tuples(_moments, _moments, st.integers(0, 100)), max_size=20)


@given(_batches)
def test_it_never_goes_back_and_never_passes_the_greatest_time_seen(batches: list[tuple[int | None, int | None, int]]) -> None:
    times = {"e": InputTime(bound_ms=10, idleness_ms=50)}
    state, now_ms, greatest = Watermarks(), 0, 0
    for first, second, pause_ms in batches:
        now_ms += pause_ms
        greatest = max(greatest, first or 0, second or 0)
        seen = {number: Seen(rows=int(moment is not None), greatest_ms=moment) for number, moment in enumerate((first, second))}
        after = state.advance(times, {"e": seen}, now_ms)
        assert after.in_force_ms is None or after.in_force_ms <= greatest - 10
        assert state.in_force_ms is None or (after.in_force_ms is not None and after.in_force_ms >= state.in_force_ms)
        state = after
