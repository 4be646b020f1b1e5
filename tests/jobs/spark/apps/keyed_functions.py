"""Keyed functions that the tests of jobs/blocks/keyed run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pyspark.sql import Row

from penstock import ConnectedFunction, Key, KeyedFunction
from penstock.jobs.blocks.keyed.values import milliseconds


class Visits(KeyedFunction):
    """Counts the clicks of a user until a gap of ten seconds."""

    def on_row(self, row: Row, key: Key) -> None:
        visit = key.value("visit").get() or {"clicks": 0, "ends": None}
        assert key.time_ms is not None
        if visit["ends"] is not None:
            key.cancel_timer(milliseconds(visit["ends"]))
        key.set_timer(key.time_ms + 10_000)
        ends = row["at"].fromtimestamp((key.time_ms + 10_000) / 1000, row["at"].tzinfo)
        key.value("visit").set({"clicks": visit["clicks"] + 1, "ends": ends})
        if row.n < 0:
            key.side_output("alerts", "n is negative", {"user": row.user, "n": row.n, "at": row["at"]})

    def on_timer(self, time_ms: int, key: Key) -> Iterator[Mapping[str, Any]]:
        visit = key.value("visit").get()
        assert milliseconds(visit["ends"]) == time_ms
        key.value("visit").clear()
        yield {"clicks": visit["clicks"], "ended": visit["ends"]}


class Trace(KeyedFunction):
    """Emits the history of the key for every row and timer."""

    def on_row(self, row: Row, key: Key) -> Iterator[Mapping[str, Any]]:
        assert key.time_ms is not None
        if row.n % 3 == 0:
            key.set_timer(key.time_ms + 4_000)
        yield self._history(f"{row.n}", key)

    def on_timer(self, time_ms: int, key: Key) -> Iterator[Mapping[str, Any]]:
        yield self._history("timer", key)

    def _history(self, what: str, key: Key) -> Mapping[str, Any]:
        key.list("before").append(what)
        key.map("counts").put(what, key.map("counts").get(what, 0) + 1)
        return {"story": " ".join(key.list("before").get()), "counts": dict(key.map("counts").items())}


def remembers(row: Row, key: Key) -> Iterator[Mapping[str, Any]]:
    """Emits the state of the key before the row, in each kind of state."""
    yield {
        "n": row.n,
        "last": key.value("last").get(),
        "all": key.list("all").get(),
        "each": {str(name): number for name, number in key.map("each").items()},
    }
    key.value("last").set(row.n)
    key.list("all").append(row.n)
    key.map("each").put(row.n % 2, row.n)


class WithRate(ConnectedFunction):
    """Payments with the rate of their currency; those that come before the first rate wait for it, at most five seconds."""

    def on_left(self, row: Row, key: Key) -> Iterator[Mapping[str, Any]]:
        rate = key.value("rate").get()
        if rate is None:
            assert key.time_ms is not None
            key.list("waiting").append(row.asDict())
            key.set_timer(key.time_ms + 5_000)
        else:
            yield {"id": row.id, "rate": rate}

    def on_right(self, row: Row, key: Key) -> Iterator[Mapping[str, Any]]:
        key.value("rate").set(row.rate)
        for payment in key.list("waiting").get():
            yield {"id": payment["id"], "rate": row.rate}
        key.list("waiting").clear()

    def on_timer(self, time_ms: int, key: Key) -> Iterator[Mapping[str, Any]]:
        for payment in key.list("waiting").get():
            key.side_output("alerts", "no rate", {**key.values, **payment})
        key.list("waiting").clear()
        return iter(())


class Soon(KeyedFunction):
    """Emits the sum of a key a moment later, by the clock."""

    def on_row(self, row: Row, key: Key) -> None:
        assert key.now_ms is not None
        key.value("sum").set((key.value("sum").get() or 0) + row.n)
        key.set_timer(key.now_ms + 1)

    def on_timer(self, time_ms: int, key: Key) -> Iterator[Mapping[str, Any]]:
        assert key.now_ms is not None
        assert time_ms <= key.now_ms
        yield {"n": key.value("sum").get()}
