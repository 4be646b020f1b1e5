"""The jobs of the benchmark: their records, and the rows that must come out, computed without a stream processor."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from benchmarks.streaming import flink_sql
from benchmarks.streaming.shipped_examples import FLIGHTS, USER_CREDIT
from benchmarks.streaming.workload import (
    BEGIN_MS,
    BROKEN_LINE,
    FLUSH_MS,
    PARTITIONS,
    Input,
    Rows,
    Workload,
    closed,
    is_kept,
    iso,
    moments,
    row,
)

_CAMPAIGNS, _ADS = 100, 1_000
_KINDS = ("view", "click", "purchase")
_REGIONS = tuple(f"region-{number:02d}" for number in range(40))
_OUT_OF_ORDERNESS = "10s"


# Ads: 240 bytes a record, as in the Yahoo streaming benchmark.


def _ad_seconds(records: int) -> float:
    # 100 campaigns have some 2,000 events per window, however many records there are.
    return max(60.0, records / 20_000)


def _ad_parts(records: int) -> Iterator[tuple[int, int, str, random.Random]]:
    for moment, random_ in moments(records, _ad_seconds(records), 1):
        yield moment, random_.randrange(_ADS), _KINDS[random_.randrange(3)], random_


def _ad_events(records: int, flush_type: str = "view") -> Iterator[bytes]:
    made = (
        (
            f'{{"ad_id":"ad-{ad:04d}","ad_type":"banner","event_type":"{kind}","event_time":{moment},'
            f'"user_id":"user-{random_.randrange(100_000):06d}","page_id":"page-{ad % 100:04d}-{moment % 1000:03d}",'
            f'"ip":"198.51.100.{ad % 256}",'
            f'"session":"0123456789abcdef0123456789abcdef"}}'
        ).encode()
        for moment, ad, kind, random_ in _ad_parts(records)
    )
    flush = f'{{"ad_id":"flush","ad_type":"flush","event_type":"{flush_type}","event_time":{FLUSH_MS}}}'.encode()
    return closed(made, flush)


def _campaigns(_: int) -> Iterator[bytes]:
    for ad in range(_ADS):
        yield f'{{"ad_id":"ad-{ad:04d}","campaign_id":"campaign-{ad * _CAMPAIGNS // _ADS:03d}","at":"{iso(BEGIN_MS - 60_000)}"}}'.encode()
    for number in range(PARTITIONS):
        yield f'{{"ad_id":"flush-{number}","campaign_id":"flush","at":"{iso(FLUSH_MS)}"}}'.encode()


def _views_by_campaign(records: int) -> Rows:
    counts: Counter[tuple[int, int]] = Counter()
    for number, (moment, ad, kind, random_) in enumerate(_ad_parts(records)):
        random_.randrange(100_000)
        if kind == "view" and is_kept(number):
            counts[ad * _CAMPAIGNS // _ADS, moment // 10_000 * 10_000] += 1
    return Counter(
        row(campaign_id=f"campaign-{campaign:03d}", window_start_ms=start, views=count) for (campaign, start), count in counts.items()
    )


def _file_events(records: int) -> Iterator[bytes]:
    """Whose last records are no views: nothing holds their rows back."""
    return _ad_events(records, "flush")


def _views(records: int) -> Rows:
    rows: Rows = Counter()
    for number, (moment, ad, kind, random_) in enumerate(_ad_parts(records)):
        user = random_.randrange(100_000)
        if kind == "view" and is_kept(number):
            rows[row(ad_id=f"ad-{ad:04d}", user_id=f"user-{user:06d}", event_time=moment)] += 1
    return rows


# Lines of a log.

_LEVELS = ("info",) * 80 + ("warn",) * 12 + ("error",) * 6 + ("Error",) * 2


def _lines(records: int) -> Iterator[str]:
    random_ = random.Random(2)
    for number in range(records):
        yield f"2025-04-05T12:{number // 4000 % 60:02d}:00Z {_LEVELS[random_.randrange(100)]} order {number} of desk {number % 97} accepted"


def _errors(records: int) -> Rows:
    lines = (line.upper() for number, line in enumerate(_lines(records)) if is_kept(number))
    return Counter(row(line=line) for line in lines if "ERROR" in line)


def _log(records: int) -> Iterator[bytes]:
    for number, line in enumerate(_lines(records)):
        yield line.encode() if is_kept(number) else BROKEN_LINE


# Impressions by region, and by session.


def _impression_parts(records: int) -> Iterator[tuple[int, int, int, int]]:
    """Event time, region, token and impressions. A token is active for half a minute and does not return."""
    tokens_a_minute = max(1, records // 7_200)
    for moment, random_ in moments(records, 12 * 3_600, 3):
        minute = (moment - BEGIN_MS) // 60_000
        yield (
            moment,
            random_.randrange(len(_REGIONS)),
            minute * tokens_a_minute + random_.randrange(tokens_a_minute),
            random_.randint(1, 50),
        )


def _impressions(records: int) -> Iterator[bytes]:
    made = (
        (
            f'{{"region_code":"{_REGIONS[region]}","unique_session_token":"token-{token:09d}","impressions":{count},"at":"{iso(moment)}"}}'
        ).encode()
        for moment, region, token, count in _impression_parts(records)
    )
    flush = f'{{"region_code":"flush","unique_session_token":"flush","impressions":0,"at":"{iso(FLUSH_MS)}"}}'.encode()
    return closed(made, flush)


def _by_region(records: int) -> Rows:
    sums: dict[tuple[int, int], list[int]] = defaultdict(lambda: [0, 0])
    for number, (moment, region, _, count) in enumerate(_impression_parts(records)):
        if is_kept(number):
            total = sums[region, moment // 300_000 * 300_000]
            total[0] += 1
            total[1] += count
    return Counter(
        row(region_code=_REGIONS[region], window_start=iso(start), window_end=iso(start + 300_000), events=events, total_impressions=total)
        for (region, start), (events, total) in sums.items()
    )


def _by_session(records: int) -> Rows:
    moments: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for number, (moment, _, token, count) in enumerate(_impression_parts(records)):
        if is_kept(number):
            moments[token].append((moment, count))
    rows: Rows = Counter()
    gap_ms = 30 * 60_000
    for token, events in moments.items():
        events.sort()
        # A token's events lie within two minutes: one session.
        start, end = iso(events[0][0]), iso(events[-1][0] + gap_ms)
        total = sum(count for _, count in events)
        name = f"token-{token:09d}"
        rows[row(unique_session_token=name, window_start=start, window_end=end, events=len(events), total_impressions=total)] += 1
    return rows


# Two streams that are joined; keys that return; a function with state.


def _impression_ids(records: int) -> Iterator[tuple[int, int]]:
    for number, (moment, _) in enumerate(moments(records, max(60.0, records / 1_000), 4)):
        yield number, moment


def _click_ids(records: int) -> list[tuple[int, int]]:
    """A click up to a minute and a half after each impression, in the order of event time."""
    random_ = random.Random(5)
    clicks = ((key, moment + random_.randrange(90_000)) for key, moment in _impression_ids(records))
    return sorted(clicks, key=lambda click: click[1])


def _ids(records: int, made: Iterable[tuple[int, int]], flush: str) -> Iterator[bytes]:
    values = (f'{{"id":"id-{key:08d}","at":{moment}}}'.encode() for key, moment in made)
    return closed(values, f'{{"id":"{flush}","at":{FLUSH_MS}}}'.encode())


def _impression_records(records: int) -> Iterator[bytes]:
    return _ids(records, _impression_ids(records), "flush-i")


def _click_records(records: int) -> Iterator[bytes]:
    return _ids(records, _click_ids(records), "flush-c")


def _pairs(records: int) -> Rows:
    impressions = {key: moment for number, (key, moment) in enumerate(_impression_ids(records)) if is_kept(number)}
    clicks = [click for number, click in enumerate(_click_ids(records)) if is_kept(number)]
    matched = ((key, click - impressions[key]) for key, click in clicks if key in impressions)
    return Counter(row(id=f"id-{key:08d}", after_ms=after) for key, after in matched if 0 <= after <= 60_000)


def _distinct_keys(records: int) -> int:
    return max(1, records // 3)


def _order_parts(records: int) -> Iterator[tuple[int, int]]:
    keys = _distinct_keys(records)
    for moment, random_ in moments(records, 3_600, 6):
        yield random_.randrange(keys), moment


def _orders(records: int) -> Iterator[bytes]:
    made = (f'{{"id":"order-{key:08d}","at":{moment}}}'.encode() for key, moment in _order_parts(records))
    return closed(made, f'{{"id":"flush","at":{FLUSH_MS}}}'.encode())


def _distinct(records: int) -> Rows:
    keys = {key for number, (key, _) in enumerate(_order_parts(records)) if is_kept(number)}
    return Counter({row(id=f"order-{key:08d}"): 1 for key in keys} | {row(id="flush"): 1})


def _customer_parts(records: int) -> Iterator[tuple[int, int]]:
    for moment, random_ in moments(records, 3_600, 7):
        yield random_.randrange(max(1, records // 500)), moment


def _customers(records: int) -> Iterator[bytes]:
    made = (f'{{"customer":"customer-{key:06d}","at":{moment}}}'.encode() for key, moment in _customer_parts(records))
    return closed(made, f'{{"customer":"flush","at":{FLUSH_MS}}}'.encode())


def _milestones(records: int) -> Rows:
    counts = Counter(key for number, (key, _) in enumerate(_customer_parts(records)) if is_kept(number))
    return Counter(
        row(customer=f"customer-{key:06d}", orders=orders) for key, count in counts.items() for orders in range(100, count + 1, 100)
    )


_ADS_SCHEMA = "ad_id STRING, event_type STRING, event_time BIGINT, user_id STRING"
_IMPRESSIONS_SCHEMA = "region_code STRING, unique_session_token STRING, impressions BIGINT, at STRING"
_MILLIS = {"format": "epoch-millis", "outOfOrderness": _OUT_OF_ORDERNESS}
_ISO = {"field": "at", "outOfOrderness": _OUT_OF_ORDERNESS}
_AT = {"time": {"field": "at", **_MILLIS}}

_ADS_INPUTS = {
    "events": Input(_ADS_SCHEMA, "event_time", _ad_events),
    "campaigns": Input("ad_id STRING, campaign_id STRING", None, _campaigns, "ad_id"),
}
_ADS_SOURCES: dict[str, dict[str, Any]] = {
    "events": {"time": {"field": "event_time", **_MILLIS, "idleness": "2m"}},
    "campaigns": {"kafka": {"tombstones": "delete", "key": {"fields": ["ad_id"]}}, "time": {**_ISO, "idleness": "2m"}},
}

WORKLOADS = {
    one.name: one
    for one in (
        Workload(
            "ads",
            "views by campaign in windows of 10 s; the campaigns are a compacted topic",
            _ADS_INPUTS,
            _views_by_campaign,
            "penstock.jobs.apps.ad_impressions",
            12_000_000,
            {"emit": "final"},
            _ADS_SOURCES,
            flink_sql.ADS,
        ),
        Workload(
            "ads_redis",
            "the same to hashes in Redis, the current values each second",
            _ADS_INPUTS,
            _views_by_campaign,
            "penstock.jobs.apps.ad_impressions",
            12_000_000,
            {"emit": "updates"},
            _ADS_SOURCES,
            output="redis",
            trigger="1s",
        ),
        Workload(
            "error_logs",
            "lines of text that contain ERROR, in upper case",
            {"logs": Input("", None, _log)},
            _errors,
            "penstock.jobs.apps.error_logs",
            3_000_000,
            app_inputs={"logs": {"kafka": {"value": "text"}}},
            flink=flink_sql.ERROR_LOGS,
            side_outputs=("quarantine",),
        ),
        Workload(
            "tumbling",
            "impressions by region in windows of 5 minutes",
            {"impressions": Input(_IMPRESSIONS_SCHEMA, "at", _impressions)},
            _by_region,
            "penstock.jobs.apps.region_impressions",
            3_000_000,
            {"window": "tumbling"},
            {"impressions": {"time": _ISO}},
            flink_sql.TUMBLING,
            either_backend=True,
        ),
        Workload(
            "sessions",
            "impressions by session, with a gap of 30 minutes",
            {"impressions": Input(_IMPRESSIONS_SCHEMA, "at", _impressions)},
            _by_session,
            "penstock.jobs.apps.region_impressions",
            1_000_000,
            {"window": "sessions"},
            {"impressions": {"time": _ISO}},
            flink_sql.SESSIONS,
            either_backend=True,
        ),
        Workload(
            "interval_join",
            "clicks within a minute of their impression, as many records on each side",
            {
                "impressions": Input("id STRING, at BIGINT", "at", _impression_records),
                "clicks": Input("id STRING, at BIGINT", "at", _click_records),
            },
            _pairs,
            "benchmarks.streaming.apps.pairs",
            500_000,
            app_inputs={"impressions": _AT, "clicks": _AT},
            flink=flink_sql.INTERVAL_JOIN,
            either_backend=True,
        ),
        Workload(
            "dedup",
            "each of a third as many orders as records once",
            {"orders": Input("id STRING, at BIGINT", "at", _orders)},
            _distinct,
            "benchmarks.streaming.apps.distinct",
            3_000_000,
            app_inputs={"orders": _AT},
            flink=flink_sql.DEDUP,
            either_backend=True,
        ),
        Workload(
            "keyed_function",
            "each hundredth order of a customer, by a function in Python with state",
            {"orders": Input("customer STRING, at BIGINT", "at", _customers)},
            _milestones,
            "benchmarks.streaming.apps.milestones",
            500_000,
            app_inputs={"orders": _AT},
        ),
        Workload(
            "files",
            "views to files of JSON lines on S3",
            {"events": Input(_ADS_SCHEMA, "event_time", _file_events)},
            _views,
            "benchmarks.streaming.apps.views",
            3_000_000,
            app_inputs={"events": {"time": {"field": "event_time", **_MILLIS}}},
            output="files",
        ),
        USER_CREDIT,
        FLIGHTS,
    )
}
