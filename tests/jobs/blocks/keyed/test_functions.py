"""The order in which a keyed function sees rows and timers, and how long its state lives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import Row
from pyspark.sql.types import IntegerType, MapType, StringType

from penstock.jobs.blocks.keyed.declared import TypedState
from penstock.jobs.blocks.keyed.function import Key, KeyedFunction
from penstock.jobs.blocks.keyed.plan import Order
from penstock.jobs.blocks.keyed.stored import List
from tests.jobs.blocks.keyed.running import Ran, cut

N = {"n": IntegerType()}
STORY = {"story": StringType()}
BEFORE = {"before": TypedState("list", StringType(), StringType())}


class Trace(KeyedFunction):
    """Emits the history of the key for every row and timer; each third row sets a timer."""

    def on_row(self, row: Row, key: Key) -> Iterator[Mapping[str, Any]]:
        assert key.time_ms is not None
        if row.n % 3 == 0:
            key.set_timer(key.time_ms + 4)
        yield self._story(str(row.n), key)

    def on_timer(self, time_ms: int, key: Key) -> Iterator[Mapping[str, Any]]:
        yield self._story(f"timer of {time_ms}", key)

    def _story(self, what: str, key: Key) -> Mapping[str, Any]:
        key.list("before").append(what)
        return {"story": ", ".join(key.list("before").get())}


@given(
    times=st.lists(st.integers(1, 60), min_size=1, max_size=14),
    sizes=st.lists(st.integers(1, 5), min_size=1, max_size=4),
    disorder=st.integers(1, 30),
)
def test_in_the_order_of_time_the_cut_and_the_order_of_arrival_do_not_matter(times: list[int], sizes: list[int], disorder: int) -> None:
    """Rows arrive out of order within the watermark's bound; the number of each is its position by time."""
    rows = [(time, {"n": n}) for n, time in enumerate(sorted(times))]
    arriving = sorted(rows, key=lambda row: (row[0] // disorder, -row[0]))
    ran = Ran(Trace(), N, STORY, BEFORE, order="time")
    greatest = 0
    for chunk in cut(arriving, sizes):
        ran.rows(*chunk)
        greatest = max(greatest, *(time for time, _ in chunk))
        if greatest - disorder > ran.tester._currentWatermarkMs:
            ran.watermark(greatest - disorder)
    ran.watermark(1_000)
    happens = sorted(
        [(time, 0, n, str(n)) for n, time in enumerate(sorted(times))]
        + [(time, 1, 0, f"timer of {time}") for time in {time + 4 for n, time in enumerate(sorted(times)) if n % 3 == 0}]
    )
    assert [one["story"] for one in ran.out] == [", ".join(what for *_, what in happens[: n + 1]) for n in range(len(happens))]
    assert [one["at"] for one in ran.out] == [time for time, *_ in happens]
    assert ran.timers == []


class Told(KeyedFunction):
    """Emits each row."""

    def on_row(self, row: Row, key: Key) -> Iterator[Mapping[str, Any]]:
        yield {"story": str(row.n)}


def test_rows_that_are_held_back_are_read_once_however_many_times_they_have(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once for each time, as it was: two thousand rows of a key took 47 s."""
    read: list[int] = []
    get = List.get

    def counted(held: List) -> list[Any]:
        rows = get(held)
        read.append(len(rows))
        return rows

    monkeypatch.setattr(List, "get", counted)
    ran = Ran(Told(), N, STORY, {}, order="time").rows(*[(time, {"n": time}) for time in range(1, 101)])
    ran.watermark(50)
    assert [one["at"] for one in ran.out] == list(range(1, 51))
    ran.watermark(200)
    assert [one["at"] for one in ran.out] == list(range(1, 101))
    assert read == [100, 50]


def test_what_was_due_comes_before_the_rows_that_arrive_after_it() -> None:
    ran = Ran(Trace(), N, STORY, BEFORE).rows((10, {"n": 3}))
    ran.tester._currentWatermarkMs = 14
    ran.rows((15, {"n": 1}))
    assert [one["story"] for one in ran.out] == ["3", "3, timer of 14", "3, timer of 14, 1"]
    assert ran.timers == []


@pytest.mark.parametrize("order", ["arrival", "time"])
def test_rows_that_an_operator_before_lets_go_of_come_in_their_turn_though_the_watermark_has_passed_them(order: Order) -> None:
    ran = Ran(Trace(), N, STORY, BEFORE, order=order, ttl_ms=100).rows((10, {"n": 3}))
    ran.watermark(10)
    # In one micro-batch: the watermark has advanced far, and the upstream operator emits rows that it has passed.
    ran.released(1_000, (12, {"n": 1}), (20, {"n": 6}), (110, {"n": 2}))
    assert [one["story"] for one in ran.out] == [
        "3",
        "3, 1",
        "3, 1, timer of 14",
        "3, 1, timer of 14, 6",
        "3, 1, timer of 14, 6, timer of 24",
        # The value written at 10 has reached its time to live of a hundred milliseconds.
        "1, timer of 14, 6, timer of 24, 2",
    ]


class Timers(KeyedFunction):
    """Sets a timer `n` ms after the row; a negative number cancels that of its opposite."""

    def on_row(self, row: Row, key: Key) -> None:
        assert key.time_ms is not None
        if row.n < 0:
            key.cancel_timer(-row.n)
        else:
            key.set_timer(key.time_ms + row.n)
            key.set_timer(key.time_ms + row.n)

    def on_timer(self, time_ms: int, key: Key) -> list[Mapping[str, Any]]:
        if time_ms == 40:
            key.set_timer(10)
            key.set_timer(45)
        return [{"story": str(time_ms)}]


def test_timers_fire_once_in_the_order_of_their_time_and_can_be_cancelled() -> None:
    ran = Ran(Timers(), N, STORY, {}).rows((20, {"n": 20}), (21, {"n": 9}), (22, {"n": 100}), (23, {"n": -122}))
    # Spark has one timer, for the earliest.
    assert ran.timers == [30]
    ran.watermark(29)
    assert ran.out == []
    ran.watermark(60)
    # A timer set for a time in the past fires in the next turn; those set by a timer fire in the same turn.
    assert [one["story"] for one in ran.out] == ["30", "40", "41", "45"]
    assert ran.timers == []


class NoTimers(KeyedFunction):
    """Sets a timer, and defines nothing that it could call."""

    def on_row(self, row: Row, key: Key) -> None:
        key.set_timer(10)


@pytest.mark.parametrize("ttl_ms", [None, 10])
def test_a_function_without_on_timer_can_set_no_timer(ttl_ms: int | None) -> None:
    with pytest.raises(ValueError, match="defines on_timer"):
        Ran(NoTimers(), N, STORY, {}, ttl_ms=ttl_ms).rows((60, {"n": 1}))


@given(order=st.permutations([{"n": 1, "f": {"a": 1}}, {"n": 2, "f": {"a": 1}}, {"n": None, "f": None}, {"n": 2, "f": {"a": 2}}]))
def test_rows_of_the_same_time_come_in_the_order_of_their_content(order: list[Mapping[str, Any]]) -> None:
    """However they arrive: nothing else tells them apart."""
    ran = Ran(Told(), {"n": IntegerType(), "f": MapType(StringType(), IntegerType())}, STORY, {})
    ran.rows(*[(7, {**row, "f": row["f"] and list(row["f"].items())}) for row in order], (6, {"n": 3, "f": None}))
    assert [one["story"] for one in ran.out] == ["3", "1", "2", "2", "None"]


class Past(KeyedFunction):
    """Sets a timer for a time in the past."""

    def on_row(self, row: Row, key: Key) -> None:
        key.set_timer(10)

    def on_timer(self, time_ms: int, key: Key) -> list[Mapping[str, Any]]:
        return [{"story": str(time_ms)}]


def test_a_timer_for_a_time_that_has_come_fires_once_the_watermark_goes_on() -> None:
    ran = Ran(Past(), N, STORY, {}).watermark(50).rows((60, {"n": 1}))
    assert (ran.timers, ran.out) == ([51], [])
    assert ran.watermark(51).out == [{"story": "51", "at": 51}]


class Remembers(KeyedFunction):
    """Emits its state, then stores the row's number in each kind of state."""

    def on_row(self, row: Row, key: Key) -> Iterator[Mapping[str, Any]]:
        known = [key.value("last").get(), key.list("all").get(), dict(key.map("each").items())]
        yield {"story": str(known)}
        key.value("last").set(row.n)
        key.list("all").append(row.n)
        key.map("each").put(row.n % 2, row.n)


REMEMBERED = {
    "last": TypedState("value", IntegerType(), StringType()),
    "all": TypedState("list", IntegerType(), StringType()),
    "each": TypedState("map", IntegerType(), IntegerType()),
}


def test_state_expires_after_its_time_to_live() -> None:
    ran = Ran(Remembers(), N, STORY, REMEMBERED, ttl_ms=10).rows((1, {"n": 1}), (4, {"n": 2}), (10, {"n": 3}), (11, {"n": 4}))
    assert [one["story"] for one in ran.out] == [
        "[None, [], {}]",
        "[1, [1], {1: 1}]",
        "[2, [1, 2], {0: 2, 1: 1}]",
        # The value written at 1 has expired at 11; its entry in the map was written again at 10.
        "[3, [2, 3], {0: 2, 1: 3}]",
    ]
    assert ran.timers == [11]
    ran.watermark(20)
    assert ran.tester.peekListState("all", "one") == [(4, 11)]
    assert ran.tester.peekMapState("each", "one") == {(0,): (4, 11)}
    assert ran.timers == [21]
    ran.watermark(21)
    for kind, state in (("value", "last"), ("list", "all"), ("map", "each")):
        assert not getattr(ran.tester, f"peek{kind.title()}State")(state, "one")
    assert ran.timers == []
    assert ran.tester.peekValueState("penstock_waiting", "one") is None


def test_state_can_live_by_the_clock() -> None:
    ran = Ran(Remembers(), N, STORY, REMEMBERED, time="processing", ttl_ms=10).clock(100)
    ran.rows((1, {"n": 1}))
    assert ran.timers == [110]
    ran.clock(109).rows((1, {"n": 2})).clock(118).rows((1, {"n": 3})).clock(200)
    assert [one["story"] for one in ran.out] == ["[None, [], {}]", "[1, [1], {1: 1}]", "[2, [2], {0: 2}]"]
    assert ran.timers == []


@pytest.mark.parametrize(
    ("given_row", "why"),
    [({"other": 1}, "its output must be a mapping of story"), (["a"], "its output must be a mapping of story")],
)
def test_a_row_that_does_not_fit_the_output_is_reported(given_row: Any, why: str) -> None:
    class Wrong(KeyedFunction):
        def on_row(self, row: Row, key: Key) -> Any:
            return [given_row]

    with pytest.raises(ValueError, match=why):
        Ran(Wrong(), N, STORY, {}).rows((1, {"n": 1}))


def test_undeclared_state_is_reported() -> None:
    class Wrong(KeyedFunction):
        def on_row(self, row: Row, key: Key) -> None:
            key.list("last")

    with pytest.raises(KeyError, match=r"no list state last; declared: last \(value\), all \(list\), each \(map\)"):
        Ran(Wrong(), N, STORY, REMEMBERED).rows((1, {"n": 1}))


def test_timers_need_a_time() -> None:
    with pytest.raises(ValueError, match='time="event"'):
        Ran(Timers(), N, STORY, {}, time=None).rows((1, {"n": 1}))
