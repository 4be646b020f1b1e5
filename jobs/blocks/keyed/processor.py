"""Runs a keyed function within Spark's transformWithState, in the order in which Flink would.

Spark passes a key's rows of a micro-batch first and its timers afterwards, each timer in a call of its own. Here a key has one Spark
timer, for the earliest pending item, and the order is:

1. what is due by the watermark with which the micro-batch began (held-back rows, timers and expired state, by time),
2. the rows of the micro-batch.

So a timer never sees the effect of a row that arrived after the watermark had passed it. Rows that an upstream stateful operator
released in the same micro-batch are as old as the watermark or older, because it passed them. They belong to the first part: everything
due up to the time of such a row is processed, then the row.

Each access to Spark's state is a message to the JVM, so what a key waits for is read only where the function can wait for something.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import ExpiredTimerInfo, StatefulProcessor, StatefulProcessorHandle, TimerValues
from pyspark.sql.types import DataType, StructType

from penstock.jobs.blocks.keyed.declared import TypedState
from penstock.jobs.blocks.keyed.function import Key, Out
from penstock.jobs.blocks.keyed.plan import HELD, Plan
from penstock.jobs.blocks.keyed.rows import Results, Rows, milliseconds
from penstock.jobs.blocks.keyed.stored import Clock, List, Stored, Value, opened
from penstock.jobs.stream.streams import TIME

_WAITING = "penstock_waiting"


class Processor(StatefulProcessor):
    """The processor that Spark calls."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Opens the state; also runs on the driver, where nothing is stored."""
        plan = self._plan
        self._handle = handle
        self._clock = Clock(ttl_ms=plan.ttl_ms)
        self._states = {name: opened(handle, name, state, self._clock) for name, state in plan.states.items()}
        own = Clock()
        self._waiting = Waiting(_internal(handle, _WAITING, "value", _WAITING_TYPE, own)) if plan.time else None
        self._held = _internal(handle, HELD, "list", plan.rows, own) if plan.order == "time" else None
        self._waits = plan.waits
        self._rows = Rows(plan)
        self._results = Results(plan)

    def handleInputRows(self, key: tuple[Any, ...], rows: Iterator[Any], timerValues: TimerValues) -> Iterator[Row]:  # noqa: N802, N803
        """Processes a key's rows of this micro-batch."""
        turn = self._turn(key, timerValues, waits=self._waits)
        arrived = self._rows.in_order(rows)
        if not self._waits:
            for row in arrived:
                yield from turn.row(row)
        elif self._held is None:
            for row in arrived:
                yield from turn.due(before=row)
                yield from turn.row(row)
        else:
            turn.hold(arrived)
        yield from turn.due()
        turn.end()

    def handleExpiredTimer(self, key: Any, timerValues: TimerValues, expiredTimerInfo: ExpiredTimerInfo) -> Iterator[Row]:  # noqa: N802, N803
        """Processes a key whose timer fired."""
        turn = self._turn(tuple(key), timerValues, waits=True)
        yield from turn.due()
        turn.end(fired_ms=expiredTimerInfo.getExpiryTimeInMs())

    def close(self) -> None:
        """Nothing is kept open."""

    def _turn(self, key: tuple[Any, ...], times: TimerValues, *, waits: bool) -> Turn:
        for state in self._states.values():
            state.forget()
        if isinstance(self._held, List):
            self._held.forget()
        plan = self._plan
        now_ms = times.getCurrentProcessingTimeInMs() if plan.time else None
        watermark_ms = times.getCurrentWatermarkInMs() if plan.time == "event" else None
        values = dict(zip(plan.keys, key, strict=True))
        working = Key(values=values, states=self._states, now_ms=now_ms, watermark_ms=watermark_ms)
        turn = Turn(plan, working, self._clock, self._results, self._rows, watermark_ms if plan.time == "event" else now_ms)
        if waits and self._waiting is not None:
            turn.begin(self._handle, self._waiting, self._held)
        return turn


_WAITING_TYPE = StructType.fromJson(
    {
        "type": "struct",
        "fields": [
            {
                "name": "timers",
                "type": {"type": "array", "elementType": "long", "containsNull": False},
                "nullable": True,
                "metadata": {},
            },
            {"name": "held_ms", "type": "long", "nullable": True, "metadata": {}},
            {"name": "expiry_ms", "type": "long", "nullable": True, "metadata": {}},
            {"name": "wake_ms", "type": "long", "nullable": True, "metadata": {}},
        ],
    }
)


class Waiting:
    """What a key waits for: its timers, the earliest held-back row, the earliest state that expires; and Spark's timer for it.

    Args:
        stored: where it is kept.
    """

    def __init__(self, stored: Any) -> None:
        self._stored: Value = stored

    def load(self) -> None:
        """Switches to another key."""
        self._stored.forget()
        stored = self._stored.get() or {}
        self.timers: list[int] = list(stored.get("timers") or [])
        self.held_ms: int | None = stored.get("held_ms")
        self.expiry_ms: int | None = stored.get("expiry_ms")
        self.wake_ms: int | None = stored.get("wake_ms")
        self._before = self._now()

    def earliest_ms(self) -> int | None:
        """When the next item is due."""
        times = [*self.timers[:1], *(time for time in (self.held_ms, self.expiry_ms) if time is not None)]
        return min(times, default=None)

    def expires(self, at_ms: int) -> None:
        """Notes that state was written that expires at a time."""
        self.expiry_ms = at_ms if self.expiry_ms is None else min(self.expiry_ms, at_ms)

    def write(self) -> None:
        """Writes back what changed."""
        if self._now() != self._before:
            self._stored.set(None if self.earliest_ms() is None else self._now())
            self._stored.write()

    def _now(self) -> dict[str, Any]:
        return {"timers": list(self.timers), "held_ms": self.held_ms, "expiry_ms": self.expiry_ms, "wake_ms": self.wake_ms}


@dataclass
class Turn:
    """Processes a key: what is due by `limit_ms`, then its rows."""

    plan: Plan
    key: Key
    clock: Clock
    results: Results
    rows: Rows
    limit_ms: int | None
    waiting: Waiting | None = None
    held: List | None = None
    handle: StatefulProcessorHandle | None = None
    timers: bool = False
    # The held-back rows, the earliest first, once one of them is due.
    _ahead: deque[dict[str, Any]] | None = field(default=None)

    def begin(self, handle: StatefulProcessorHandle, waiting: Waiting, held: Any) -> None:
        """Loads what the key waits for."""
        waiting.load()
        self.handle, self.waiting, self.held = handle, waiting, held
        self.timers = self.plan.function.sets_timers()
        self.key.timers = waiting.timers
        self.clock.written = waiting.expires

    def row(self, row: dict[str, Any]) -> Iterator[Row]:
        """Passes a row to the function."""
        time_ms = milliseconds(row)
        if self.waiting is not None:
            assert self.limit_ms is not None
            in_time = self.plan.order == "time" or (self.plan.time == "event" and time_ms is not None and time_ms <= self.limit_ms)
            earliest_ms = time_ms if in_time and time_ms is not None else self.limit_ms + 1
            self.key.earliest_ms = earliest_ms if self.timers else None
            self.clock.now_ms = time_ms if self.plan.time == "event" and time_ms is not None else self.limit_ms
        self.key.time_ms = time_ms
        yield from self._given(self.plan.function.on_row(self.rows.seen(row), self.key), time_ms)

    def due(self, before: Mapping[str, Any] | None = None) -> Iterator[Row]:
        """Processes everything due: expired state first, and rows before timers of the same time.

        Args:
            before: a row to be processed next: what comes after it stays.
        """
        waiting = self.waiting
        limit_ms = self._limit_ms(before)
        while waiting is not None and limit_ms is not None:
            time_ms = waiting.earliest_ms()
            if time_ms is None or time_ms > limit_ms:
                return
            if waiting.expiry_ms == time_ms:
                self._expire(time_ms)
            elif waiting.held_ms == time_ms:
                yield from self._release(time_ms)
            else:
                yield from self._fire(time_ms)

    def hold(self, rows: Sequence[dict[str, Any]]) -> None:
        """Holds rows back until the watermark has passed them."""
        assert self.held is not None and self.waiting is not None
        if rows:
            self.held.append(*rows)
            first_ms = rows[0][TIME] // 1000
            self.waiting.held_ms = first_ms if self.waiting.held_ms is None else min(self.waiting.held_ms, first_ms)

    def end(self, fired_ms: int | None = None) -> None:
        """Writes back, and registers Spark's timer for the next due item.

        Args:
            fired_ms: the timer that Spark called with, which it deletes itself.
        """
        for state in self.key.states.values():
            state.write()
        if self.waiting is None:
            return
        assert self.handle is not None
        if self.held is not None:
            if self._ahead is not None:
                self.held.set(list(self._ahead))
            self.held.write()
        wake_ms = self.waiting.earliest_ms()
        if wake_ms != self.waiting.wake_ms:
            if self.waiting.wake_ms not in (None, fired_ms):
                self.handle.deleteTimer(self.waiting.wake_ms)
            if wake_ms is not None:
                self.handle.registerTimer(wake_ms)
            self.waiting.wake_ms = wake_ms
        self.waiting.write()

    def _limit_ms(self, before: Mapping[str, Any] | None) -> int | None:
        before_ms = milliseconds(before) if before is not None and self.plan.time == "event" else None
        return self.limit_ms if before_ms is None or self.limit_ms is None else min(self.limit_ms, before_ms - 1)

    def _expire(self, time_ms: int) -> None:
        assert self.waiting is not None
        following = [state.expire(time_ms) for state in self.key.states.values()]
        self.waiting.expiry_ms = min((moment for moment in following if moment is not None), default=None)

    def _release(self, time_ms: int) -> Iterator[Row]:
        """The held-back rows of one time."""
        assert self.held is not None and self.waiting is not None
        if self._ahead is None:
            self._ahead = deque(self.rows.sorted(self.held.get()))
        now = []
        while self._ahead and milliseconds(self._ahead[0]) == time_ms:
            now.append(self._ahead.popleft())
        self.waiting.held_ms = milliseconds(self._ahead[0]) if self._ahead else None
        for row in now:
            yield from self.row(row)

    def _fire(self, time_ms: int) -> Iterator[Row]:
        self.key.timers.remove(time_ms)
        self.key.time_ms, self.key.earliest_ms, self.clock.now_ms = time_ms, time_ms + 1, time_ms
        yield from self._given(self.plan.function.on_timer(time_ms, self.key), time_ms)

    def _given(self, rows: Out, time_ms: int | None) -> Iterator[Row]:
        # Exhausted first: a generator sets state and timers as it runs.
        results = list(rows or ())
        for one in results:
            yield self.results.data(one, self.key.values, time_ms)
        for side_output in self.key.side_rows:
            yield self.results.side_output(side_output)
        self.key.side_rows.clear()


def _internal(handle: StatefulProcessorHandle, name: str, kind: Literal["value", "list"], of: DataType, clock: Clock) -> Stored:
    return opened(handle, name, TypedState(kind, of, of), clock)
