"""The oracle of lateness, for cases computed by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from penstock.jobs.local.recording import Recorded, RecordedBatch, Recording
from penstock.jobs.local.replay import Clock, Judged, judge

BOUND_MS = 10
IDLENESS_MS = 1_000
FOREVER_MS = 10**12


def _time_ms(record: Recorded) -> int | None:
    return int(record.value) if record.value and record.value.isdigit() else None


def _clock(idleness_ms: int = FOREVER_MS) -> Clock:
    return Clock(_time_ms, BOUND_MS, idleness_ms)


def _recording(
    batches: Sequence[Mapping[str, Sequence[tuple[int, str]]]],
    partitions: Mapping[str, int],
    times_ms: Sequence[int] | None = None,
    watermarks_ms: Mapping[int, int] | None = None,
) -> Recording:
    """A recording of micro-batches, each topic -> (partition, value), with the watermarks of Spark's log."""
    records: dict[str, list[Recorded]] = {topic: [] for topic in partitions}
    ends: dict[str, dict[int, int]] = {topic: dict.fromkeys(range(count), 0) for topic, count in partitions.items()}
    recorded = []
    for number, batch in enumerate(batches):
        for topic, values in batch.items():
            for partition, value in values:
                records[topic].append(Recorded(partition, ends[topic][partition], None, value.encode(), False))
                ends[topic][partition] += 1
        time_ms = times_ms[number] if times_ms else number
        snapshot = {topic: dict(offsets) for topic, offsets in ends.items()}
        recorded.append(RecordedBatch(number, time_ms, (watermarks_ms or {}).get(number, 0), snapshot))
    return Recording(records, partitions, recorded, {topic: dict.fromkeys(range(count), 0) for topic, count in partitions.items()})


def _verdict(judged: Judged) -> tuple[str, str]:
    action = "quarantined" if judged.time_ms is None else "late" if judged.late else "in time"
    return (judged.record.value or b"").decode(), action


def test_late_is_strictly_older_than_the_current_watermark_when_the_batch_began() -> None:
    recording = _recording([{"t": [(0, "100"), (0, "85")]}, {"t": [(0, "89"), (0, "200"), (0, "90")]}], {"t": 1}, watermarks_ms={1: 89})
    assert [_verdict(event) for event in judge(recording, {"t": _clock()})] == [
        # 85 is older than 100 - 10, but there was no watermark when its micro-batch began.
        ("100", "in time"),
        ("85", "in time"),
        # The current watermark is 90, also after the 200 of the same micro-batch.
        ("89", "late"),
        ("200", "in time"),
        ("90", "in time"),
    ]


def test_a_record_that_does_not_parse_is_neither_late_nor_moves_the_watermark() -> None:
    recording = _recording([{"t": [(0, "100")]}, {"t": [(0, "broken")]}, {"t": [(0, "90")]}], {"t": 1}, watermarks_ms={1: 89, 2: 89})
    assert [_verdict(event)[1] for event in judge(recording, {"t": _clock()})] == ["in time", "quarantined", "in time"]


def test_the_slowest_partition_holds_the_watermark() -> None:
    recording = _recording([{"t": [(0, "1000"), (1, "50")]}, {"t": [(1, "40"), (1, "39")]}], {"t": 2}, watermarks_ms={1: 39})
    assert [_verdict(event) for event in judge(recording, {"t": _clock()})][2:] == [("40", "in time"), ("39", "late")]


def test_a_partition_that_was_never_heard_of_holds_it_back_altogether() -> None:
    recording = _recording([{"t": [(0, "1000")]}, {"t": [(0, "1")]}], {"t": 2})
    assert [_verdict(event)[1] for event in judge(recording, {"t": _clock()})] == ["in time", "in time"]


def test_of_two_topics_the_least_counts() -> None:
    recording = _recording(
        [{"a": [(0, "1000")], "b": [(0, "50")]}, {"a": [(0, "40")], "b": [(0, "39")]}], {"a": 1, "b": 1}, watermarks_ms={1: 39}
    )
    assert [_verdict(event) for event in judge(recording, {"a": _clock(), "b": _clock()})][2:] == [("40", "in time"), ("39", "late")]


def test_the_watermark_never_goes_back() -> None:
    recording = _recording([{"t": [(0, "100")]}, {"t": [(0, "20")]}, {"t": [(0, "89")]}], {"t": 1}, watermarks_ms={1: 89, 2: 89})
    assert [_verdict(event)[1] for event in judge(recording, {"t": _clock()})] == ["in time", "late", "late"]


def test_a_partition_is_left_out_from_when_it_was_silent_for_as_long_as_the_idleness() -> None:
    batches = [{"t": [(0, "100"), (1, "100")]}, {"t": [(0, "500")]}, {"t": [(0, "600")]}, {"t": [(0, "589"), (0, "590")]}]
    times_ms = [0, IDLENESS_MS - 1, IDLENESS_MS, IDLENESS_MS + 1]
    # A millisecond before the idleness is reached partition 1 still holds back at 90; then only partition 0 counts.
    recording = _recording(batches, {"t": 2}, times_ms, watermarks_ms={1: 89, 2: 89, 3: 589})
    assert [_verdict(event) for event in judge(recording, {"t": _clock(IDLENESS_MS)})][4:] == [("589", "late"), ("590", "in time")]


def test_a_silent_partition_that_was_never_heard_of_is_left_out_in_the_end() -> None:
    batches = [{"t": [(0, "100")]}, {"t": [(0, "200")]}, {"t": [(0, "189")]}]
    recording = _recording(batches, {"t": 2}, [0, IDLENESS_MS, IDLENESS_MS], watermarks_ms={2: 189})
    assert [_verdict(event)[1] for event in judge(recording, {"t": _clock(IDLENESS_MS)})] == ["in time", "in time", "late"]


def test_a_partition_that_comes_back_counts_again_but_carries_nothing_back() -> None:
    batches = [{"t": [(0, "100"), (1, "100")]}, {"t": [(0, "500")]}, {"t": [(1, "491"), (0, "900")]}, {"t": [(0, "489"), (0, "490")]}]
    recording = _recording(batches, {"t": 2}, [0, IDLENESS_MS, IDLENESS_MS + 1, IDLENESS_MS + 2], watermarks_ms={1: 89, 2: 489, 3: 489})
    assert [_verdict(event)[1] for event in judge(recording, {"t": _clock(IDLENESS_MS)})][3:] == ["in time", "in time", "late", "in time"]


def test_the_watermark_does_not_advance_while_all_inputs_are_idle() -> None:
    batches: list[Mapping[str, Sequence[tuple[int, str]]]] = [{"t": [(0, "100")]}, {}, {"t": [(0, "89")]}]
    recording = _recording(batches, {"t": 1}, [0, IDLENESS_MS, IDLENESS_MS], watermarks_ms={1: 89, 2: 89})
    assert [_verdict(event)[1] for event in judge(recording, {"t": _clock(IDLENESS_MS)})] == ["in time", "late"]


@pytest.mark.parametrize("logged_ms", [0, 88, 90])
def test_a_watermark_in_the_engines_log_that_differs_from_the_input_is_reported(logged_ms: int) -> None:
    recording = _recording([{"t": [(0, "100")]}, {"t": [(0, "95")]}], {"t": 1}, watermarks_ms={1: logged_ms})
    with pytest.raises(AssertionError, match=f"batch 1: {logged_ms} in the offset log, 90 - 1 from its input"):
        list(judge(recording, {"t": _clock()}))


def test_only_what_the_run_read_is_judged() -> None:
    # The run began at offset 1: earlier records are neither judged nor advance the watermark.
    records = [Recorded(0, offset, None, value, False) for offset, value in enumerate((b"900", b"100", b"95"))]
    recording = Recording(
        {"t": records}, {"t": 1}, [RecordedBatch(0, 0, 0, {"t": {0: 2}}), RecordedBatch(1, 1, 89, {"t": {0: 3}})], {"t": {0: 1}}
    )
    assert [_verdict(event) for event in judge(recording, {"t": _clock()})] == [("100", "in time"), ("95", "in time")]


def test_a_record_that_does_not_move_the_watermark_is_judged_by_it_all_the_same() -> None:
    clock = Clock(_time_ms, BOUND_MS, FOREVER_MS, moves=lambda record: record.value != b"500")
    recording = _recording([{"t": [(0, "100"), (0, "500")]}, {"t": [(0, "89"), (0, "90"), (0, "500")]}], {"t": 1}, watermarks_ms={1: 89})
    assert [_verdict(event)[1] for event in judge(recording, {"t": clock})] == ["in time", "in time", "late", "in time", "in time"]
