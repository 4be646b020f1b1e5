"""An independent computation of the watermark in plain Python from the recorded micro-batches: the oracle for late rows.

Deliberately separate from `penstock.jobs.stream.event_time`: a check must not share code with what it checks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation

from penstock.jobs.local.recording import Recorded, RecordedBatch, Recording

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS = {"epoch-seconds": Decimal(1000), "epoch-millis": Decimal(1), "epoch-micros": Decimal("0.001")}
_LAST_MS = int((datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC) - _EPOCH).total_seconds() + 1) * 1000 - 1
# Spark's watermark after the last record of a bounded run.
_END_MS = _LAST_MS + 1
_FIRST_MS = int((datetime(1, 1, 1, tzinfo=UTC) - _EPOCH).total_seconds()) * 1000


@dataclass(frozen=True)
class Clock:
    """How a topic's event time is read.

    Args:
        time_ms: event time of a record in epoch milliseconds; None for one that does not parse.
        bound_ms: maximum out-of-orderness.
        idleness_ms: time after which an idle partition no longer holds back the watermark; None: it always does.
        lateness_ms: how long after the watermark its records still count.
        max_ahead_ms: how far a record may be ahead of its micro-batch; None for no limit.
        by_clock: whether each record's time is that of its micro-batch; `time_ms` then only determines whether it parses.
        moves: whether a record advances the watermark; a tombstone that deletes does not.
    """

    time_ms: Callable[[Recorded], int | None]
    bound_ms: int
    idleness_ms: int | None
    lateness_ms: int = 0
    max_ahead_ms: int | None = None
    by_clock: bool = False
    moves: Callable[[Recorded], bool] = lambda record: True


@dataclass(frozen=True)
class Judged:
    """A record with its verdict.

    Args:
        topic: topic of the record.
        record: the record.
        time_ms: its event time; None: quarantined.
        late: whether it was late.
        behind_ms: how far it was behind the watermark, late or not; 0 for one that was not.
    """

    topic: str
    record: Recorded
    time_ms: int | None
    late: bool
    behind_ms: int = 0


def moment_ms(value: object, form: str = "iso-8601") -> int | None:
    """Parses an event time into epoch milliseconds; None if it is invalid.

    Args:
        value: value of the JSON field.
        form: ``iso-8601``, ``epoch-seconds``, ``epoch-millis`` or ``epoch-micros``.
    """
    if form == "iso-8601":
        return _from_iso_8601(value) if isinstance(value, str) else None
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    if isinstance(value, str) and not re.fullmatch(r"-?[0-9]{1,20}(\.[0-9]{1,9})?", value, re.ASCII):
        return None
    try:
        millis = (Decimal(str(value)) * _UNITS[form]).__floor__()
    except (InvalidOperation, OverflowError, ValueError):
        return None
    return millis if _FIRST_MS <= millis <= _LAST_MS else None


def judge(
    recording: Recording, clocks: Mapping[str, Clock], *, strict: bool = True, when_idle: str = "stand", bounded: bool = False
) -> Iterator[Judged]:
    """The verdicts on all records in the order of the micro-batches.

    Args:
        recording: recording of the run.
        clocks: topic -> how its event time is read; topics without event time are ignored.
        strict: whether an operator of the job drops rows as old as the watermark, as a join does: Spark's own watermark is then 1 ms
            behind.
        when_idle: ``stand`` or ``clock``, as in the spec.
        bounded: whether the watermark goes to the end of time once all records have been read.

    Raises:
        AssertionError: the engine's log has another watermark for a micro-batch than its input yields.
    """
    state, left = _State(recording, clocks, when_idle), sum(map(len, recording.records.values()))
    for batch, read in recording.by_batch():
        left -= sum(map(len, read.values()))
        if state.cleared is not None:
            _same_as_logged(batch, state.cleared, strict=strict)
        for topic, records in read.items():
            if topic in clocks:
                yield from [state.judged(batch, topic, record) for record in records]
        state.end(batch)
        if bounded and not left:
            state.current_watermark = state.cleared = _END_MS


@dataclass
class _State:
    """State that a micro-batch passes on to the next one."""

    recording: Recording
    clocks: Mapping[str, Clock]
    when_idle: str
    current_watermark: int | None = None
    cleared: int | None = None
    greatest: dict[tuple[str, int], int] = field(default_factory=dict)
    heard: dict[tuple[str, int], int] = field(default_factory=dict)
    inputs: dict[str, int] = field(default_factory=dict)

    def judged(self, batch: RecordedBatch, topic: str, record: Recorded) -> Judged:
        """The verdict on one record; the times of its partition are recorded for the end of the micro-batch."""
        clock, place = self.clocks[topic], (topic, record.partition)
        self.heard[place] = batch.time_ms
        time_ms = clock.time_ms(record)
        if time_ms is not None and clock.by_clock:
            time_ms = max(batch.time_ms, batch.time_ms if self.current_watermark is None else self.current_watermark)
        if time_ms is None or (clock.max_ahead_ms is not None and not clock.by_clock and time_ms - batch.time_ms > clock.max_ahead_ms):
            return Judged(topic, record, None, False)
        if clock.moves(record):
            self.greatest[place] = max(time_ms, self.greatest.get(place, time_ms))
        if self.current_watermark is None or self.cleared is None:
            return Judged(topic, record, time_ms, False)
        behind_ms = max(0, self.current_watermark - time_ms)
        return Judged(topic, record, time_ms, behind_ms > clock.lateness_ms or time_ms < self.cleared, behind_ms)

    def end(self, batch: RecordedBatch) -> None:
        """The watermark with which the next micro-batch begins."""
        awake = {topic: self._awake(topic, batch) for topic in self.clocks}
        all_idle = not any(places or self.clocks[topic].by_clock for topic, places in awake.items())
        held: list[int | None] = []
        for topic, clock in self.clocks.items():
            if clock.by_clock or (all_idle and self.when_idle == "clock"):
                held.append(self._raised(topic, batch.time_ms - clock.bound_ms))
            elif awake[topic]:
                times = [self.greatest.get(place) for place in awake[topic]]
                known = [time_ms for time_ms in times if time_ms is not None]
                held.append(self._raised(topic, min(known) - clock.bound_ms) if len(known) == len(times) else self.inputs.get(topic))
        moments = [moment for moment in held if moment is not None]
        if not moments or len(moments) < len(held):
            return
        self.current_watermark = max([min(moments), *([] if self.current_watermark is None else [self.current_watermark])])
        behind = self.current_watermark - max(clock.lateness_ms for clock in self.clocks.values())
        self.cleared = max([behind, *([] if self.cleared is None else [self.cleared])])

    def _awake(self, topic: str, batch: RecordedBatch) -> list[tuple[str, int]]:
        idleness_ms = self.clocks[topic].idleness_ms
        places = [(topic, partition) for partition in range(self.recording.partitions[topic])]
        silent_ms = {place: batch.time_ms - self.heard.setdefault(place, batch.time_ms) for place in places}
        return [place for place in places if idleness_ms is None or silent_ms[place] < idleness_ms]

    def _raised(self, topic: str, moment: int) -> int:
        self.inputs[topic] = max(moment, self.inputs.get(topic, moment))
        return self.inputs[topic]


def _same_as_logged(batch: RecordedBatch, cleared: int, *, strict: bool) -> None:
    computed = f"{cleared} - 1" if strict else f"{cleared}"
    logged = batch.watermark_ms
    assert logged == cleared - int(strict), f"batch {batch.number}: {logged} in the offset log, {computed} from its input"


def _from_iso_8601(text: str) -> int | None:
    if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)", text, re.ASCII):
        return None
    try:
        moment = datetime.fromisoformat(re.sub(r"(\.\d{1,6})\d*", r"\1", text))
    except ValueError:
        return None
    return (moment - _EPOCH) // timedelta(milliseconds=1)
