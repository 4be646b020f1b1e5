"""Temporal and broadcast joins without a session, in Spark's own tester of stateful processors, against a loop over single rows."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql.streaming.tws_tester import TwsTester

from penstock.jobs.blocks.joins import versioned
from penstock.jobs.blocks.joins.arrow_groups import encoded
from penstock.jobs.blocks.joins.as_of import waiting_schema
from penstock.jobs.blocks.joins.in_order import LEFT, RIGHT, Arrival
from penstock.jobs.blocks.joins.versioned import Every, Newest, Versioned
from tests.jobs.blocks.joins.test_as_of import _one_by_one

_KINDS = [Newest(whole=True), Newest(whole=False), Every()]
_IDS = [f"id {number}" for number in range(40)]


class Ran:
    """A processor's results for the rows of one group."""

    def __init__(self, processor: Versioned) -> None:
        self.tester = TwsTester(processor, timeMode="EventTime", eventTimeExtractor=lambda row: row.newest_us // 1000)
        self.every, self.by_right = isinstance(processor, Every), processor == Newest(whole=True)
        self.out: list[tuple[Any, ...]] = []

    def rows(self, arrivals: Sequence[Arrival]) -> None:
        """A micro-batch, read by two tasks."""
        halves = arrivals[::2], arrivals[1::2]
        streams = [encoded(pa.Table.from_pylist([arrival._asdict() for arrival in half], waiting_schema())) for half in halves if half]
        newest_us = max(arrival.at_us for arrival in arrivals)
        self._take(self.tester.testInPandas("one", pd.DataFrame({"rows": streams, "newest_us": newest_us})))

    def watermark(self, ms: int) -> None:
        """Advances the watermark to a time."""
        self._take(self.tester.setWatermark(ms))

    @property
    def timers(self) -> list[int]:
        """The timers that Spark is requested to set."""
        return sorted(self.tester.handle._timers.listTimers("one"))

    def _take(self, frame: Any) -> None:
        for row in frame.to_dict("records"):
            if self.by_right:
                self.out += [(us, left, row["_right"]) for us, left in zip(row["_us"], row["_left"], strict=True)]
            else:
                self.out.append((row["_us"], row["_left"], list(row["_rights"]) if self.every else row["_right"]))


def _random_rows(random_: random.Random, after_ms: int, count: int) -> list[Arrival]:
    rows = []
    for _ in range(count):
        side = random_.choice([LEFT, LEFT, RIGHT])
        at_ms = after_ms + 1 + random_.choice([0, 1, random_.randrange(40)])
        id = random_.choice([*_IDS, None] if side == LEFT else _IDS)
        gone = side == RIGHT and random_.random() < 0.3
        rows.append(Arrival(at_ms * 1000, side, random_.randrange(2), gone, id, f"row {random_.randrange(10**6)}"))
    return rows


@pytest.mark.parametrize("kind", range(len(_KINDS)))
@pytest.mark.parametrize("seed", range(6))
def test_rows_of_any_micro_batches_have_the_partners_of_a_loop_over_single_rows(
    seed: int, kind: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # So that values of the state and results come in several parts, the log is rewritten, and entries are read each for itself.
    monkeypatch.setattr(versioned, "_ROWS", 7)
    monkeypatch.setattr(versioned, "_PARTNERS", 50)
    monkeypatch.setattr(versioned, "_AT_ONCE", random.Random(seed).choice([0, 1, 8]))
    random_, ran, all_ = random.Random(seed), Ran(_KINDS[kind]), []
    watermark_ms = 0
    for _ in range(20):
        arrived = _random_rows(random_, watermark_ms, random_.choice([1, 5, 30]))
        all_ += arrived
        ran.rows(arrived)
        if random_.random() < 0.7:
            watermark_ms += random_.randrange(1, 30)
            ran.watermark(watermark_ms)
        waiting = [arrival.at_us // 1000 for arrival in all_ if arrival.at_us // 1000 > watermark_ms]
        assert ran.timers == sorted(waiting)[:1], "one timer, for the oldest row"
    ran.watermark(watermark_ms + 100)
    assert ran.timers == []
    wanted = [
        (left.at_us, left.row, [row for _, row in sorted(then.items())] if ran.every else then.get(left.id or "none"))
        for left, then in _one_by_one(all_, {})
    ]
    # By right row, their order is not that of time.
    assert Counter(ran.out) == Counter(wanted) if ran.by_right else ran.out == wanted


def test_nothing_is_kept_of_rows_that_have_been_due_but_the_table() -> None:
    for kind in _KINDS:
        ran = Ran(kind)
        ran.rows(
            [Arrival(1000, RIGHT, 0, False, "a", "1"), Arrival(1000, RIGHT, 0, False, "b", "2"), Arrival(2000, LEFT, 0, False, "a", "x")]
        )
        ran.rows([Arrival(3000, RIGHT, 0, True, "a", "gone")])
        ran.watermark(5)
        tester = ran.tester
        assert tester.peekMapState("waiting_rows", "one") == {} and tester.peekValueState("waiting_index", "one") is None
        if kind == Newest(whole=False):
            assert tester.peekMapState("version_by_id", "one") == {("b",): ("2",)}
            assert tester.peekValueState("version_count", "one") == (1,)


def test_a_log_is_rewritten_once_most_of_it_is_outdated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versioned, "_ROWS", 10)
    ran = Ran(Newest(whole=True))
    lengths = []
    for number in range(1, 40):
        ran.rows([Arrival(number * 1000, RIGHT, 0, False, "a", str(number))])
        ran.watermark(number)
        lengths.append(len(ran.tester.peekListState("table_log", "one")))
    assert max(lengths) == 12 and lengths.count(1) == 4, "one row, and at most twice as many and ten changes"
