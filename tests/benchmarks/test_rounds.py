from __future__ import annotations

import itertools
import time
from collections import Counter
from pathlib import Path
from typing import cast

import pytest
from rich.console import Console

from benchmarks.streaming.contestants import spark
from benchmarks.streaming.contestants.place import Place
from benchmarks.streaming.latency import latency
from benchmarks.streaming.rounds import CONTESTANTS, Bench, Filled, _differences, _hidden, _Watched, takes_part
from benchmarks.streaming.workload import Backend
from benchmarks.streaming.workloads import WORKLOADS
from penstock.scripts.local import recorded_run
from penstock.scripts.local.kafka_broker import KafkaBroker
from penstock.scripts.process.process_tree import ProcessTree
from penstock.scripts.progress import Steps


class Clock:
    """Seconds that pass when a test says so; a CPU second for each two of them."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def cpu_s(self) -> float:
        return self.now_s / 2


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(time, "monotonic", lambda: clock.now_s)
    return clock


def _watched(clock: Clock, marks: dict[float, int], expected: int = 90) -> _Watched:
    watched = _Watched(expected)
    watched.begin(cast("ProcessTree", clock))
    for at_s, rows in marks.items():
        clock.now_s = at_s
        watched.seen(rows)
    return watched


def _filled(events: int) -> Filled:
    return Filled(WORKLOADS["tumbling"], events, events, {}, Counter())


def test_figures_after_the_start_are_those_of_the_rows_after_the_first_third(clock: Clock) -> None:
    # 10 s for the start and the first third, then 2 s for the rest.
    watched = _watched(clock, {9.0: 15, 10.0: 30, 11.0: 60, 12.0: 90})
    result = watched.result(_filled(900), 100.0, ())
    assert (result.total_s, result.total_cpu_s) == (12, 6)
    assert result.events_per_cpu_s == 150
    assert result.warm_events_per_s == pytest.approx(300)
    assert result.warm_events_per_cpu_s == pytest.approx(600)


def test_rows_that_all_come_at_once_have_no_figures_after_the_start(clock: Clock) -> None:
    result = _watched(clock, {12.0: 90}).result(_filled(900), 100.0, ())
    assert (result.warm_events_per_s, result.warm_events_per_cpu_s) == (0, 0)
    assert result.events_per_cpu_s == 150


def test_rows_that_should_not_come_do_not_change_the_figures(clock: Clock) -> None:
    result = _watched(clock, {9.0: 30, 12.0: 90, 14.0: 91}).result(_filled(900), 100.0, ())
    assert result.total_s == 12
    assert result.warm_events_per_s == pytest.approx(200)


class Failed:
    """A contestant that has ended."""

    failure = RuntimeError("gone")


def test_a_contestant_that_fails_ends_its_round_unless_all_rows_are_there(clock: Clock) -> None:
    with pytest.raises(RuntimeError, match="gone"):
        _watched(clock, {12.0: 89}).wait(Failed())
    _watched(clock, {12.0: 90}).wait(Failed())


def test_a_round_that_fails_is_a_result_and_its_logs_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def place(*_: object) -> Place:
        (tmp_path / "tumbling-flink-1").mkdir()
        (tmp_path / "tumbling-flink-1" / "flink.log").write_text("why", encoding="utf-8")
        raise RuntimeError("no place")

    bench = Bench(tmp_path, tmp_path / "logs", Steps(Console(quiet=True)))
    monkeypatch.setattr(bench, "place", place)
    assert bench.run("flink", _filled(900)).wrong == ("failed: no place",)
    assert (tmp_path / "logs" / "tumbling-flink-1.flink.log").read_text(encoding="utf-8") == "why"


def test_the_other_backend_takes_part_where_the_state_may_be_in_either() -> None:
    others = {"penstock_memory", "flink_rocksdb"}
    taking_part = {name: {one for one in CONTESTANTS if takes_part(one, workload)} for name, workload in WORKLOADS.items()}
    assert taking_part["sessions"] == set(CONTESTANTS)
    # A broadcast join and a keyed function have RocksDB; a job that filters has no state.
    assert taking_part["ads"] == taking_part["error_logs"] == set(CONTESTANTS) - others
    assert taking_part["keyed_function"] == set(CONTESTANTS) - others - {"flink"}


@pytest.mark.parametrize(("backend", "state"), [(None, None), ("memory", {"backend": "memory"})])
def test_a_backend_that_is_not_the_default_is_in_the_spec(tmp_path: Path, backend: Backend | None, state: dict[str, str] | None) -> None:
    place = Place(WORKLOADS["sessions"], 1, {"impressions": "in"}, "out", None, "", "", "", "", lambda: 0, {}, tmp_path, backend)
    assert spark._spec(place)["spec"].get("state") == state


def test_lost_and_doubled_rows_are_named() -> None:
    assert _differences(Counter("ab"), Counter("ab")) == ()
    assert _differences(Counter("ab"), Counter("aa")) == ("1 rows lost, such as b", "1 rows too many, such as a")


def test_a_latency_is_summed_up() -> None:
    summary = latency(1_000, [float(wait) for wait in range(1, 1_001)])
    assert (summary.rows, summary.p50_ms, summary.longest_ms) == (1_000, 500.5, 1_000)
    assert summary.p99_ms == pytest.approx(990, abs=1)
    assert summary.said() == "1,000 records/s: p50 500 ms, p99 990 ms, longest 1,000 ms"


def test_too_few_rows_have_no_latency() -> None:
    assert latency(1_000, [1.0]).said() == "1,000 records/s: no figures, only 1 rows have come"


def test_what_readers_of_a_folder_skip_is_no_output() -> None:
    assert [_hidden(key) for key in ("out/part-0.json", "out/_spark_metadata/0", "out/.part-0.json.crc")] == [False, True, True]


@pytest.mark.parametrize(
    ("errors", "kept", "wrong"),
    [
        (None, [], ()),
        ("e", [2, 3], ()),
        ("e", [2], ("2 records in e, and 3 do not parse",)),
        ("e", [4], ("4 records in e, and 3 do not parse",)),
    ],
)
def test_a_contestant_that_keeps_what_does_not_parse_has_kept_all_of_it(
    errors: str | None, kept: list[int], wrong: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The last count again and again.
    counts = itertools.chain(kept, itertools.repeat(kept[-1] if kept else 0))
    monkeypatch.setattr(recorded_run, "count_records", lambda *_: next(counts))
    monkeypatch.setattr(time, "sleep", lambda _: None)
    monkeypatch.setattr("benchmarks.streaming.rounds._KEPT_S", 0.01)
    monkeypatch.setattr(KafkaBroker, "address", "127.0.0.1:9092")
    bench = Bench(tmp_path, tmp_path, Steps(Console(quiet=True)))
    place = Place(WORKLOADS["tumbling"], 1, {}, "out", errors, "", "", "", "", lambda: 0, {}, tmp_path)
    assert bench._not_kept(place, 3) == wrong
