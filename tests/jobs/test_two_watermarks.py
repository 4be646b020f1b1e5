"""The watermark and its oracle are independent implementations: on any run of micro-batches they agree on every row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from penstock.jobs.local.recording import Recorded, RecordedBatch, Recording
from penstock.jobs.local.replay import Clock, judge
from penstock.jobs.watermark import InputTime, Seen, Watermarks, WhenIdle, is_late

PARTITIONS = {"a": 2, "b": 1}
MAX_AHEAD_MS = 150


class _Row(NamedTuple):
    topic: str
    partition: int
    time_ms: int | None


_places = st.sampled_from([("a", 0), ("a", 1), ("b", 0)])
_rows = st.builds(lambda place, time_ms: _Row(place[0], place[1], time_ms), _places, st.none() | st.integers(0, 400))
_batches = st.lists(st.tuples(st.integers(0, 60), st.lists(_rows, max_size=6)), max_size=12)
_inputs = st.builds(
    lambda bound_ms, idleness_ms, lateness_ms, by_clock: InputTime(
        bound_ms=bound_ms, idleness_ms=idleness_ms, lateness_ms=lateness_ms, by_clock=by_clock
    ),
    st.integers(0, 30),
    st.none() | st.integers(1, 80),
    st.integers(0, 30),
    st.booleans(),
)


@given(_batches, st.fixed_dictionaries({"a": _inputs, "b": _inputs}), st.sampled_from(["stand", "clock"]), st.booleans())
def test_the_watermark_and_its_oracle_agree(
    batches: list[tuple[int, list[_Row]]], times: dict[str, InputTime], when_idle: WhenIdle, strict: bool
) -> None:
    state, now_ms = Watermarks(), 200
    recorded: list[RecordedBatch] = []
    records: dict[str, list[Recorded]] = {"a": [], "b": []}
    ends = {topic: dict.fromkeys(range(count), 0) for topic, count in PARTITIONS.items()}
    expected: list[tuple[int | None, bool]] = []
    for number, (pause_ms, rows) in enumerate(batches):
        now_ms += pause_ms
        # In the order in which a micro-batch reads them: topic by topic, partition by partition.
        rows = sorted(rows, key=lambda row: row[:2])
        outcomes = [(row, _time_ms(row, times[row.topic], state, now_ms)) for row in rows]
        expected += [(time_ms, time_ms is not None and is_late(time_ms, state, times[row.topic].lateness_ms)) for row, time_ms in outcomes]
        for row in rows:
            value = b"" if row.time_ms is None else str(row.time_ms).encode()
            records[row.topic].append(Recorded(row.partition, ends[row.topic][row.partition], None, value, False))
            ends[row.topic][row.partition] += 1
        logged = 0 if state.engine_ms is None else state.engine_ms - int(strict)
        recorded.append(RecordedBatch(number, now_ms, logged, {topic: dict(some) for topic, some in ends.items()}))
        state = state.advance(times, _seen(outcomes), now_ms, when_idle)
    starts = {topic: dict.fromkeys(range(count), 0) for topic, count in PARTITIONS.items()}
    recording = Recording(records, PARTITIONS, recorded, starts)
    judged = list(judge(recording, {topic: _clock(time) for topic, time in times.items()}, strict=strict, when_idle=when_idle))
    assert [(one.time_ms, one.late) for one in judged] == expected


def _time_ms(row: _Row, time: InputTime, state: Watermarks, now_ms: int) -> int | None:
    if row.time_ms is None:
        return None
    if time.by_clock:
        return max(now_ms, state.current_ms or 0)
    return None if row.time_ms - now_ms > MAX_AHEAD_MS else row.time_ms


def _seen(outcomes: list[tuple[_Row, int | None]]) -> Mapping[str, Mapping[str, Seen]]:
    return {
        topic: {f"{topic}-{number}": _one([time_ms for row, time_ms in outcomes if row[:2] == (topic, number)]) for number in range(count)}
        for topic, count in PARTITIONS.items()
    }


def _one(times_ms: list[int | None]) -> Seen:
    return Seen(rows=len(times_ms), greatest_ms=max((time_ms for time_ms in times_ms if time_ms is not None), default=None))


def _clock(time: InputTime) -> Clock:
    return Clock(
        lambda record: int(record.value) if record.value else None,
        time.bound_ms,
        time.idleness_ms,
        time.lateness_ms,
        MAX_AHEAD_MS,
        time.by_clock,
    )
