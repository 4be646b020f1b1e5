"""Keyed functions: state of each kind, timers, time to live, the order of rows, and the blocks built on them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from penstock.jobs.blocks.joins import Side, temporal_join
from penstock.jobs.blocks.keyed import Keyed, Step, connect, deduplicate, list_of, map_of, pattern, process, value
from penstock.jobs.blocks.windows import aggregate, count_window, tumbling
from penstock.jobs.driver.session import state_conf
from penstock.jobs.sources.records import _repartitioned
from penstock.jobs.spec import State
from penstock.jobs.stream.streams import TIME, Stream, Tag
from tests.jobs.spark.apps.keyed_functions import Soon, Trace, Visits, WithRate, remembers
from tests.jobs.spark.blocks import Input, at, row, run, same
from tests.jobs.spark.running import Surroundings


def _visits(streams: Mapping[str, Stream]) -> Stream:
    clicks = streams["clicks"].transform(lambda frame: frame.withColumn("at", frame["_time"]))
    state = {"visit": value("clicks int, ends timestamp")}
    return process(clicks, ["user"], Visits(), output="user string, clicks int, ended timestamp", state=state)


def test_timers_fire_by_the_watermark_and_before_the_rows_that_came_after_it(surroundings: Surroundings) -> None:
    batches = [
        [row("1", user="a", n=1), row("5", user="a", n=2), row("4", user="b", n=-1), row(None, user="x", n=0)],
        # The watermark is 5 s when this one begins, 15.001 s after it: timers at 15 s are due.
        [row("15.001", user="c", n=1)],
        [row("16", user="b", n=1), row("40", user="d", n=1), row("15", user="a", n=100)],
        [],
    ]
    ran = run(surroundings, {"clicks": Input("user STRING, n INT", batches)}, _visits)
    same(
        ran.rows,
        [
            {"user": "a", "clicks": 2, "ended": at("15")},
            {"user": "b", "clicks": 1, "ended": at("14")},
            {"user": "c", "clicks": 1, "ended": at("25.001")},
            {"user": "b", "clicks": 1, "ended": at("26")},
        ],
    )
    assert [len(rows) for rows in ran.batches[:4]] == [0, 0, 2, 2]
    assert sorted(moment.astimezone(UTC) for times in ran.times[:3] for moment in times if moment) == [at("14"), at("15")]
    assert [alert["reason"] for alert in ran.side_outputs["alerts"]] == ["n is negative"]
    assert ran.side_outputs["alerts"][0]["value"] == '{"user":"b","n":-1,"at":"2025-04-05T12:30:04+00:00"}'
    assert len(ran.side_outputs["quarantined"]) == len(ran.side_outputs["late"]) == 1


def _expected(user: str, rows: list[tuple[int, int]]) -> list[dict[str, Any]]:
    """Expected results of `Trace` for rows (second, n) of one key, in plain Python: rows before timers of the same time."""
    happens = sorted([(second, 0, str(n)) for second, n in rows] + [(second + 4, 1, "timer") for second, n in rows if n % 3 == 0])
    before: list[str] = []
    results = []
    for _, _, what in happens:
        before.append(what)
        counts = {name: before.count(name) for name in sorted(set(before))}
        results.append({"user": user, "story": " ".join(before), "counts": counts})
    return results


def test_rows_and_timers_in_the_order_of_time_do_not_depend_on_the_cut(surroundings: Surroundings) -> None:
    rows = [(3, 3), (1, 1), (2, 2), (7, 6), (5, 5), (9, 7), (8, 4), (12, 9), (11, 8), (10, 10)]
    whole, parts = ([row(f"{second}", user=user, n=n) for second, n in rows] for user in ("whole", "parts"))
    # The watermark is 3, 5, 9 and then 51 s: the rows of one key arrive at once and those of the other gradually.
    batches = [
        [*whole, *parts[:3]],
        [*parts[3:6], row("14", user="z", n=1)],
        [*parts[6:], row("18", user="z", n=1)],
        [row("60", user="z", n=1)],
    ]
    output = "user string, story string, counts map<string, int>"
    state = {"before": list_of("string"), "counts": map_of("string", "int")}
    ran = run(
        surroundings,
        {"clicks": Input("user STRING, n INT", batches, bound_s=9)},
        lambda streams: process(streams["clicks"], ["user"], Trace(), output=output, state=state, order="time").filter("user != 'z'"),
    )
    results = [{**one, "counts": dict(sorted(one["counts"].items()))} for one in ran.rows]
    same(results, [*_expected("whole", rows), *_expected("parts", rows)])
    assert [len({one["user"] for one in batch}) for batch in ran.batches] == [0, 2, 2, 2, 2]


def test_state_goes_after_its_time_to_live_and_lasts_across_restarts(surroundings: Surroundings) -> None:
    def build(streams: Mapping[str, Stream]) -> Stream:
        state = {"last": value("int"), "all": list_of("int"), "each": map_of("int", "int")}
        output = "n int, last int, all array<int>, each map<string, int>"
        return process(streams["clicks"], ["user"], remembers, output=output, state=state, ttl="10s")

    first = [[row("1", user="a", n=1), row("4", user="a", n=2)]]
    ran = run(surroundings, {"clicks": Input("user STRING, n INT", first, bound_s=100)}, build, name="remembers")
    same(ran.rows, [{"n": 1, "last": None, "all": [], "each": {}}, {"n": 2, "last": 1, "all": [1], "each": {"1": 1}}])
    # At 12 s the value written at 1 s has expired, the rest has not; at 14 s all but the last has.
    then = [[row("12", user="a", n=3)], [row("14", user="a", n=4), row("200", user="z", n=0)], [row("201", user="z", n=9)]]
    ran = run(surroundings, {"clicks": Input("user STRING, n INT", then, bound_s=100)}, build, name="remembers")
    same(
        ran.rows,
        [
            {"n": 3, "last": 2, "all": [2], "each": {"0": 2}},
            {"n": 4, "last": 3, "all": [3], "each": {"1": 3}},
            {"n": 0, "last": None, "all": [], "each": {}},
            {"n": 9, "last": 0, "all": [0], "each": {"0": 0}},
        ],
    )


def test_what_a_timer_gives_is_counted_by_the_window_after_it(surroundings: Surroundings) -> None:
    batches = [
        [row("1", user="a", n=1), row("4", user="b", n=1)],
        [row("30", user="a", n=1), row("52", user="c", n=1)],
        [row("10:00", user="z", n=1)],
    ]

    def build(streams: Mapping[str, Stream]) -> Stream:
        return aggregate(_visits(streams), tumbling("30s"), visits="count(*)", clicks="sum(clicks)")

    ran = run(surroundings, {"clicks": Input("user STRING, n INT", batches)}, build)
    ends = [
        {"window_start": at(start), "window_end": at(end), "visits": 1, "clicks": clicks}
        for start, end, clicks in (("0", "30", 1), ("30", "60", 2), ("60", "1:30", 1))
    ]
    same(ran.rows, ends)


@pytest.mark.on_executors("connect")
def test_two_inputs_share_the_state_and_the_timers_of_a_key(surroundings: Surroundings) -> None:
    payments = [
        [row("1", id=1, currency="EUR"), row("2", id=2, currency="USD")],
        [row("3", id=3, currency="EUR")],
        [row("20", id=4, currency="EUR")],
    ]
    rates = [[row("0", of="GBP", rate=1.0)], [row("4", of="EUR", rate=1.1)], [row("21", of="EUR", rate=1.2)]]
    ran = run(
        surroundings,
        {"payments": Input("id INT, currency STRING", payments), "rates": Input("of STRING, rate DOUBLE", rates)},
        lambda streams: connect(
            Keyed(streams["payments"], ["currency"]),
            Keyed(streams["rates"], ["of"]),
            WithRate(),
            output="id int, currency string, rate double",
            state={"rate": value("double"), "waiting": list_of("id int, currency string")},
        ),
    )
    same(ran.rows, [{"id": number, "currency": "EUR", "rate": 1.1} for number in (1, 3, 4)])
    assert [alert["value"] for alert in ran.side_outputs["alerts"]] == ['{"currency":"USD","id":2}']


def test_duplicates_within_the_time_are_counted_and_those_beyond_it_pass(surroundings: Surroundings) -> None:
    batches = [
        [row("1", id="a", n=1), row("1", id="a", n=1), row("2", id="b", n=2)],
        [row("9", id="a", n=1), row("30", id="c", n=3)],
        [row("31", id="d", n=4)],
        [row("32", id="a", n=1), row("33", id="d", n=4)],
    ]
    ran = run(
        surroundings,
        {"in": Input("id STRING, n INT", batches)},
        lambda streams: deduplicate(streams["in"], ["id"], within="10s").filter("n != 3"),
    )
    same(ran.rows, [{"id": "a", "n": 1}, {"id": "b", "n": 2}, {"id": "d", "n": 4}, {"id": "a", "n": 1}])
    assert ran.events[-1]["totalTags"] == {Tag.DATA: 4, Tag.FILTERED: 4}


def test_of_duplicates_the_one_with_the_least_event_time_passes_if_asked_for(surroundings: Surroundings) -> None:
    batches = [
        [row("9", id="a", n=1), row("8", id="a", n=2), row("18", id="a", n=3)],
        [row("7", id="a", n=4), row("16.999", id="a", n=5)],
        [row("90", id="z", n=6)],
    ]
    ran = run(
        surroundings,
        {"in": Input("id STRING, n INT", batches, bound_s=20)},
        lambda streams: deduplicate(streams["in"], ["id"], within="10s", keep="first"),
    )
    # 8 s and 9 s and 16.999 s are less than 10 s after 7 s; 18 s is not.
    same(ran.rows, [{"id": "a", "n": 4}, {"id": "a", "n": 3}])
    assert ran.events[-1]["totalTags"] == {Tag.DATA: 2, Tag.FILTERED: 3}


def test_failures_and_then_a_success_within_a_time_are_found_in_the_order_of_time(surroundings: Surroundings) -> None:
    def login(time: str, user: str, ok: bool, ip: str = "x") -> dict[str, Any]:
        return row(time, user=user, ok=ok, ip=ip)

    batches = [
        [login("20", "a", True, "hit"), login("3", "a", False, "1"), login("12", "a", False, "2"), login("5", "b", False)],
        [login("15", "a", False, "4"), login("13", "a", False, "3"), login("6", "b", False), login("7", "b", True, "too few")],
        [
            login("24", "c", True),
            login("21", "c", False),
            login("22", "c", False),
            login("23", "c", False),
            login("21", "a", True, "used up"),
        ],
        [login("36", "c", True, "too late"), login("5:00", "z", True)],
    ]
    fails_then_gets_in = [Step("failed", "not ok", times=3), Step("success", F.col("ok"))]
    ran = run(
        surroundings,
        {"logins": Input("user STRING, ok BOOLEAN, ip STRING", batches, bound_s=30)},
        lambda streams: pattern(streams["logins"], ["user"], fails_then_gets_in, within="10s").select(
            user="user", first="first_time", last="last_time", ips="transform(failed, row -> row.ip)", success="success[0].ip"
        ),
    )
    same(
        ran.rows,
        [
            {"user": "a", "first": at("12"), "last": at("20"), "ips": ["2", "3", "4"], "success": "hit"},
            {"user": "c", "first": at("21"), "last": at("24"), "ips": ["x", "x", "x"], "success": "x"},
        ],
    )


def test_timers_of_processing_time_fire_in_the_micro_batch_after(surroundings: Surroundings) -> None:
    batches = [
        [row("1", user="a", n=1), row("1", user="a", n=2), row("1", user="b", n=5)],
        [row("2", user="a", n=4)],
        [row("3", user="c", n=9)],
    ]
    ran = run(
        surroundings,
        {"in": Input("user STRING, n INT", batches, timed=False)},
        lambda streams: process(
            streams["in"], ["user"], Soon(), output="user string, n int", state={"sum": value("int")}, time="processing"
        ),
    )
    assert [sorted((one["user"], one["n"]) for one in batch) for batch in ran.batches[:3]] == [[], [("a", 3), ("b", 5)], [("a", 7)]]


@pytest.mark.parametrize(
    ("declared", "why"),
    [
        ({"keys": ["nobody"]}, "must be columns of the stream, user, n, at"),
        ({"keys": ["at"]}, "timestamps cannot be keys"),
        ({"keys": []}, "must be columns of the stream, user, n, at"),
        ({"output": "user whatever"}, "is not a Spark type"),
        ({"output": "bigint"}, "has no named fields"),
        ({"state": {"of": value("whatever")}}, "is not a Spark type"),
        ({"state": {"_of": value("int")}}, "invalid state name"),
        ({"ttl": "soon"}, 'ttl = "soon": expected'),
        ({"order": "time", "time": "processing"}, 'order="time" requires event time'),
    ],
)
def test_an_invalid_declaration_is_rejected_before_the_query_starts(
    surroundings: Surroundings, declared: Mapping[str, Any], why: str
) -> None:
    with pytest.raises(ValueError, match=why):
        _processed(surroundings.session, declared)


@pytest.mark.parametrize("block", ["keyed functions", "windows with a trigger", "temporal, regular and broadcast joins"])
def test_state_on_the_heap_is_rejected(surroundings: Surroundings, block: str) -> None:
    provider = "spark.sql.streaming.stateStore.providerClass"
    before = surroundings.session.conf.get(provider) or ""
    surroundings.session.conf.set(provider, state_conf(State(backend="memory"))[provider])
    try:
        with pytest.raises(ValueError, match=f"^{block} require RocksDB state.*state.backend: rocksdb"):
            _on_the_heap(surroundings.session, block)
    finally:
        surroundings.session.conf.set(provider, before)


def _on_the_heap(session: SparkSession, block: str) -> Stream:
    stream = _one_row(session)
    if block == "windows with a trigger":
        return aggregate(stream, count_window(2), n="count(*)")
    if block == "keyed functions":
        return process(stream, ["user"], remembers, output="n int")
    return temporal_join(Side("a", stream, "user"), Side("b", stream, "user"))


def _processed(session: SparkSession, declared: Mapping[str, Any]) -> Stream:
    arguments: dict[str, Any] = {"keys": ["user"], "output": "n int", **declared}
    return process(_one_row(session), function=remembers, **arguments)


def _one_row(session: SparkSession) -> Stream:
    frame = session.sql(f"select 'a' as user, 1 as n, timestamp '2025-04-05T12:30:00Z' as at, cast(null as timestamp) as {TIME}")
    return Stream(frame, timed=True)


def test_records_are_repartitioned_among_the_requested_tasks_in_the_same_way_each_time(session: SparkSession) -> None:
    read = session.range(0, 100, 1, 2).selectExpr("'t' as topic", "0 as partition", "id as offset", "cast(id as string) as value")
    repartitioned = [_repartitioned(read, 5).withColumn("task", F.spark_partition_id()).orderBy("offset").collect() for _ in range(2)]
    assert repartitioned[0] == repartitioned[1]
    assert {one["task"] for one in repartitioned[0]} == set(range(5))
    assert _repartitioned(read, None) is read
