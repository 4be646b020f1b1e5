"""The watermark: minimum over partitions and inputs, monotonic, without idle partitions."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from penstock.jobs.watermark import END_MS, InputTime, Partition, Seen, Watermarks, is_late

TEN_S = InputTime(bound_ms=10_000)


def _ms(clock: str) -> int:
    hours, minutes, seconds = (int(part) for part in clock.split(":"))
    return ((hours * 60 + minutes) * 60 + seconds) * 1000


def _one(greatest_ms: int | None, rows: int = 1) -> dict[str, Seen]:
    return {"t-0": Seen(rows=rows, greatest_ms=greatest_ms)}


def test_the_seed_documents_second_example_gives_its_watermarks_and_its_two_late_events() -> None:
    # E2 12:30:10, E4 :20, E6 :30, E7 :35 give :00, :10, :20, :25; L1 (:08) after :10 and L2 (:05) after :20 are late, by the document's
    # own numbers.
    state = Watermarks()
    arrivals = [("12:30:10", "12:30:00"), ("12:30:20", "12:30:10"), ("12:30:08", "12:30:10"), ("12:30:30", "12:30:20")]
    arrivals += [("12:30:05", "12:30:20"), ("12:30:35", "12:30:25")]
    late = []
    for event, watermark in arrivals:
        if is_late(_ms(event), state):
            late.append(event)
        state = state.advance({"e": TEN_S}, {"e": _one(_ms(event))}, now_ms=0)
        assert state.current_ms == _ms(watermark), event
    assert late == ["12:30:08", "12:30:05"]


def test_an_event_as_old_as_the_watermark_is_not_late() -> None:
    assert not is_late(5, Watermarks(current_ms=5, cleared_ms=5))
    assert is_late(4, Watermarks(current_ms=5, cleared_ms=5))
    assert not is_late(4, Watermarks())


def test_the_slowest_partition_holds_the_watermark() -> None:
    seen = {"e": {"t-0": Seen(rows=9, greatest_ms=100_000), "t-1": Seen(rows=1, greatest_ms=30_000)}}
    assert Watermarks().advance({"e": TEN_S}, seen, now_ms=0).current_ms == 20_000


def test_a_partition_that_was_never_heard_of_holds_the_watermark_back() -> None:
    seen = {"e": {"t-0": Seen(rows=9, greatest_ms=100_000), "t-1": Seen(rows=0)}}
    assert Watermarks().advance({"e": TEN_S}, seen, now_ms=0).current_ms is None


def test_of_two_inputs_the_least_counts() -> None:
    times = {"a": TEN_S, "b": InputTime(bound_ms=1_000)}
    state = Watermarks().advance(times, {"a": _one(50_000), "b": _one(42_000)}, now_ms=0)
    assert state.inputs == {"a": 40_000, "b": 41_000}
    assert state.current_ms == 40_000


def test_an_idle_partition_is_left_out_and_takes_part_again_when_it_returns() -> None:
    times = {"e": InputTime(bound_ms=0, idleness_ms=120_000)}
    state = Watermarks().advance(times, {"e": {"t-0": Seen(rows=1, greatest_ms=1_000), "t-1": Seen(rows=1, greatest_ms=1_000)}}, now_ms=0)
    fast = {"t-0": Seen(rows=1, greatest_ms=500_000), "t-1": Seen(rows=0)}
    assert state.advance(times, {"e": fast}, now_ms=119_999).current_ms == 1_000
    left_out = state.advance(times, {"e": fast}, now_ms=120_000)
    assert left_out.current_ms == 500_000
    again = {"t-0": Seen(rows=1, greatest_ms=900_000), "t-1": Seen(rows=1, greatest_ms=600_000)}
    back = left_out.advance(times, {"e": again}, now_ms=130_000)
    assert back.current_ms == 600_000


def test_an_idle_input_does_not_hold_back_the_other() -> None:
    times = {"a": InputTime(bound_ms=0, idleness_ms=10), "b": InputTime(bound_ms=0, idleness_ms=10)}
    state = Watermarks().advance(times, {"a": _one(5), "b": _one(5)}, now_ms=0)
    assert state.advance(times, {"a": _one(70), "b": _one(None, rows=0)}, now_ms=10).current_ms == 70


def test_the_watermark_does_not_advance_while_all_inputs_are_idle() -> None:
    times = {"a": InputTime(bound_ms=0, idleness_ms=10)}
    state = Watermarks().advance(times, {"a": _one(5)}, now_ms=0)
    assert state.advance(times, {"a": _one(None, rows=0)}, now_ms=99).current_ms == 5


def test_a_new_partition_counts_as_active_from_when_it_shows_up() -> None:
    times = {"a": InputTime(bound_ms=0, idleness_ms=10)}
    state = Watermarks().advance(times, {"a": _one(5)}, now_ms=0)
    grown = {"t-0": Seen(rows=1, greatest_ms=50), "t-1": Seen(rows=0)}
    assert state.advance(times, {"a": grown}, now_ms=100).current_ms == 5


def test_a_row_within_the_allowed_lateness_is_not_late_and_the_state_is_kept_for_it() -> None:
    time = InputTime(bound_ms=0, lateness_ms=10)
    state = Watermarks().advance({"e": time}, {"e": _one(100)}, now_ms=0)
    assert (state.current_ms, state.engine_ms) == (100, 90)
    assert [is_late(moment, state, time.lateness_ms) for moment in (90, 89)] == [False, True]


def test_of_two_inputs_the_state_is_kept_for_the_one_that_may_be_later() -> None:
    times = {"a": InputTime(bound_ms=0, lateness_ms=10), "b": InputTime(bound_ms=0)}
    state = Watermarks().advance(times, {"a": _one(100), "b": _one(100)}, now_ms=0)
    assert (state.current_ms, state.engine_ms) == (100, 90)
    assert [is_late(95, state, time.lateness_ms) for time in times.values()] == [False, True]


def test_more_lateness_after_a_restart_does_not_restore_cleared_state() -> None:
    state = Watermarks().advance({"e": TEN_S}, {"e": _one(100_000)}, now_ms=0)
    more = state.advance({"e": InputTime(bound_ms=10_000, lateness_ms=60_000)}, {"e": _one(101_000)}, now_ms=1)
    assert (more.current_ms, more.engine_ms) == (91_000, 90_000)
    assert is_late(89_999, more, 60_000)
    assert not is_late(90_000, more, 60_000)


def test_the_watermark_goes_on_by_the_clock_where_the_spec_says_so_once_every_input_is_idle() -> None:
    times = {"a": InputTime(bound_ms=5, idleness_ms=10), "b": InputTime(bound_ms=5, idleness_ms=20)}
    nothing = {"a": _one(None, rows=0), "b": _one(None, rows=0)}
    state = Watermarks().advance(times, {"a": _one(100), "b": _one(50)}, now_ms=1_000, when_idle="clock")
    assert state.current_ms == 45
    one_idle = state.advance(times, nothing, now_ms=1_019, when_idle="clock")
    assert one_idle.current_ms == 45, "b is not idle yet"
    by_clock = one_idle.advance(times, nothing, now_ms=1_020, when_idle="clock")
    assert (by_clock.current_ms, by_clock.inputs) == (1_015, {"a": 1_015, "b": 1_015})
    assert by_clock.advance(times, nothing, now_ms=1_030, when_idle="clock").current_ms == 1_025
    back = by_clock.advance(times, {"a": _one(1_100), "b": _one(None, rows=0)}, now_ms=1_030, when_idle="clock")
    assert back.current_ms == 1_095, "the rows' own time counts again"


def test_an_input_of_processing_time_follows_the_clock_whether_rows_come_or_not() -> None:
    times = {"p": InputTime(bound_ms=0, by_clock=True)}
    state = Watermarks().advance(times, {"p": _one(1_000)}, now_ms=1_000)
    assert state.current_ms == 1_000
    assert state.advance(times, {"p": _one(None, rows=0)}, now_ms=1_500).current_ms == 1_500
    assert state.advance(times, {"p": _one(None, rows=0)}, now_ms=900).current_ms == 1_000, "a clock that was put back"


def test_an_input_of_processing_time_joins_one_of_event_time_by_the_least() -> None:
    times = {"p": InputTime(bound_ms=0, by_clock=True), "e": InputTime(bound_ms=0, idleness_ms=50)}
    state = Watermarks().advance(times, {"p": _one(1_000), "e": _one(400)}, now_ms=1_000)
    assert state.current_ms == 400
    idle = state.advance(times, {"p": _one(1_050), "e": _one(None, rows=0)}, now_ms=1_050)
    assert idle.current_ms == 1_050


def test_a_record_of_a_version_that_knew_one_topic_a_source_goes_on() -> None:
    written = '{"inForceMs": 90000, "inputs": {"e": 90000}, "partitions": {"e": {"0": {"greatestMs": 100000, "activeMs": 7}}}}'
    old = Watermarks.model_validate_json(written)
    after = old.advance({"e": TEN_S}, {"e": {"my-topic-0": Seen(rows=0)}}, now_ms=9)
    assert (after.current_ms, after.engine_ms) == (90_000, 90_000)
    assert after.partitions == {"e": {"my-topic-0": Partition(greatest_ms=100_000, active_ms=7)}}


def test_a_deleted_partition_does_not_hold_back_the_watermark() -> None:
    two = {"e": {"t-0": Seen(rows=1, greatest_ms=5), "u-0": Seen(rows=1, greatest_ms=90)}}
    state = Watermarks().advance({"e": InputTime(bound_ms=0)}, two, now_ms=0)
    assert state.current_ms == 5
    assert state.advance({"e": InputTime(bound_ms=0)}, {"e": {"u-0": Seen(rows=0)}}, now_ms=1).current_ms == 90


def test_at_the_end_of_a_bounded_input_the_watermark_stays_whatever_comes() -> None:
    times = {"a": InputTime(bound_ms=10, lateness_ms=10), "b": InputTime(bound_ms=10, by_clock=True)}
    before = Watermarks().advance(times, {"a": _one(100), "b": _one(None, rows=0)}, now_ms=50)
    assert not before.at_end
    state = before.ended()
    assert (state.at_end, state.current_ms, state.engine_ms) == (True, END_MS, END_MS)
    assert (state.inputs, state.partitions) == (before.inputs, before.partitions), "where the data has taken them"
    after = state.advance(times, {"a": _one(None, rows=0), "b": _one(None, rows=0)}, now_ms=60)
    assert (after.current_ms, after.engine_ms) == (END_MS, END_MS)
    assert Watermarks.model_validate_json(after.model_dump_json(by_alias=True)) == after


def test_no_data_takes_the_watermark_to_the_end() -> None:
    last_ms = int(datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp()) * 1000 + 999
    state = Watermarks().advance({"e": InputTime(bound_ms=0)}, {"e": _one(last_ms)}, now_ms=0)
    assert (state.at_end, END_MS - last_ms) == (False, 1)


_moments = st.one_of(st.none(), st.integers(0, 10**6))
_batches = st.lists(st.tuples(_moments, _moments, st.integers(0, 100)), max_size=20)


@given(_batches)
def test_it_never_goes_back_and_never_passes_the_greatest_time_seen(batches: list[tuple[int | None, int | None, int]]) -> None:
    times = {"e": InputTime(bound_ms=10, idleness_ms=50)}
    state, now_ms, greatest = Watermarks(), 0, 0
    for first, second, pause_ms in batches:
        now_ms += pause_ms
        greatest = max(greatest, first or 0, second or 0)
        seen = {f"t-{number}": Seen(rows=int(moment is not None), greatest_ms=moment) for number, moment in enumerate((first, second))}
        after = state.advance(times, {"e": seen}, now_ms)
        assert after.current_ms is None or after.current_ms <= greatest - 10
        assert state.current_ms is None or (after.current_ms is not None and after.current_ms >= state.current_ms)
        state = after
