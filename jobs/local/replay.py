"""The watermark once more, in plain Python and from the recorded micro-batches: the oracle that tells which rows are late.

Deliberately not `penstock.jobs.stream.event_time`: what checks must not share code with what is checked.
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
_FIRST_MS = int((datetime(1, 1, 1, tzinfo=UTC) - _EPOCH).total_seconds()) * 1000


@dataclass(frozen=True)
class Clock:
    """How a topic's event time is read.

    Args:
        time_ms: event time of a record in epoch milliseconds; None for one that does not parse.
        bound_ms: how far out of order.
        idleness_ms: after how long a silent partition is left out; None: never.
        lateness_ms: for how long after the watermark its records still count.
        max_ahead_ms: how far a record may be ahead of its micro-batch; None: however far.
        by_clock: whether each record's time is that of its micro-batch; `time_ms` then only tells what parses.
        moves: whether a record moves the watermark; a tombstone that deletes does not.
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
    """A record and what became of it.

    Args:
        topic: where it lies.
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
    """An event time in epoch milliseconds; None for what can't be read.

    Args:
        value: of the field, as JSON has it.
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


def judge(recording: Recording, clocks: Mapping[str, Clock], *, strict: bool = True, when_idle: str = "stand") -> Iterator[Judged]:
    """Every record in the order of the micro-batches.

    Args:
        recording: of the run.
        clocks: topic -> how its event time is read; topics without event time are left out.
        strict: whether an operator of the job drops rows as old as the watermark, as a join does: Spark's own is then 1 ms behind.
        when_idle: ``stand`` or ``clock``, as the spec has it.

    Raises:
        AssertionError: the engine's own log holds another watermark for a micro-batch than its input gives.
    """
    state = _State(recording, clocks, when_idle)
    for batch, read in recording.by_batch():
        if state.cleared is not None:
            _same_as_logged(batch, state.cleared, strict=strict)
        for topic, records in read.items():
            if topic in clocks:
                yield from [state.judged(batch, topic, record) for record in records]
        state.end(batch)


@dataclass
class _State:
    """What a micro-batch leaves to the next one."""

    recording: Recording
    clocks: Mapping[str, Clock]
    when_idle: str
    current_watermark: int | None = None
    cleared: int | None = None
    greatest: dict[tuple[str, int], int] = field(default_factory=dict)
    heard: dict[tuple[str, int], int] = field(default_factory=dict)
    inputs: dict[str, int] = field(default_factory=dict)

    def judged(self, batch: RecordedBatch, topic: str, record: Recorded) -> Judged:
        """What becomes of one record; its partition's times are taken down for the micro-batch's end."""
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
        """The watermark that the next micro-batch begins with."""
        awake = {topic: self._awake(topic, batch) for topic in self.clocks}
        nobody = not any(places or self.clocks[topic].by_clock for topic, places in awake.items())
        held: list[int | None] = []
        for topic, clock in self.clocks.items():
            if clock.by_clock or (nobody and self.when_idle == "clock"):
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
