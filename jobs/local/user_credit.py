"""Input and expectation of user_credit: the worked example, then a small version of a day's traffic with all its faults.

Includes a local implementation of the credit service that it calls: the response depends on the request only, so that it can be computed
in advance; but the first request for some pairs is answered with a retryable status, or slowly.
"""

from __future__ import annotations

import json
import random
import threading
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta, timezone
from time import sleep
from typing import Any

from penstock.jobs.local.recording import Expectation, Record, Recorded, Recording
from penstock.jobs.local.replay import Clock, Judged, judge

EVENTS = 50_000
WITHIN_MS = 60_000
BOUND_MS = 10_000
IDLENESS_MS = 120_000

# The worked example of watermarks: eight events of one token, on an arbitrary day.
WORKED_EXAMPLE = {
    "events-a": {"A": "12:29:50", "B": "12:29:55", "C": "12:29:45", "D": "12:30:05"},
    "events-b": {"W": "12:29:52", "X": "12:29:58", "Y": "12:29:48", "Z": "12:30:08"},
}
EXAMPLE_DAY = "2025-04-05"
TRAFFIC_BEGINS = datetime(2025, 4, 5, 13, 0, tzinfo=UTC)
FLUSH_TIME = TRAFFIC_BEGINS + timedelta(days=1)
_INDIA = timezone(timedelta(hours=5, minutes=30))

# One pair in this many is never answered, and one only at the second attempt.
DOWN_IN, BUSY_IN = 400, 50
# The first request for these pairs, those of the worked example's event A, takes longer than the job waits.
SLOW_USER, SLOW_S = "example-A", 4.0
_asked_before: set[str] = set()
_lock = threading.Lock()


def events_a(partitions: int) -> Iterator[Record]:
    """Topic A: 4 events of the worked example, some 50,000 of traffic, a flush event per partition."""
    return _topic("events-a", "amount", partitions, seed=1)


def events_b(partitions: int) -> Iterator[Record]:
    """Topic B, likewise; a quarter of its tokens are those of topic A."""
    return _topic("events-b", "credit_limit", partitions, seed=2)


def credit_service(method: str, path: str, headers: Mapping[str, str], body: bytes) -> tuple[int, object]:
    """The credit service: ``POST /limits`` with token, user_id, amount and credit_limit, and the ``Idempotency-Key``."""
    if (method, path) != ("POST", "/limits"):
        return 404, {"reason": "there is nothing here"}
    key, asked = headers["idempotency-key"], json.loads(body)
    with _lock:
        first = key not in _asked_before
        _asked_before.add(key)
    if first and asked["user_id"] == SLOW_USER:
        sleep(SLOW_S)
    if _is_down(key) or (first and zlib.crc32(key.encode()) % BUSY_IN == 1):
        return 503, {"reason": "busy"}
    limit = new_limit(asked)
    return (200, {"new_limit": limit}) if limit is not None else (422, {"reason": "the limit can't bear it"})


def new_limit(pair: Mapping[str, Any]) -> float | None:
    """The limit minus a tenth of the amount; None if that is negative, or if one of them is unknown."""
    if pair["amount"] is None or pair["credit_limit"] is None:
        return None
    left = round(pair["credit_limit"] - pair["amount"] / 10, 2)
    return left if left >= 0 else None


def _is_down(key: str) -> bool:
    return zlib.crc32(key.encode()) % DOWN_IN == 0


def expect(recording: Recording) -> Expectation:
    """All pairs of accepted events of the same token within a minute, each with the limit that the credit service returns."""
    clock = Clock(lambda record: _time_ms(record.value), BOUND_MS, IDLENESS_MS)
    judged = list(judge(recording, {"events-a": clock, "events-b": clock}))
    accepted = [event for event in judged if event.time_ms is not None and not event.late]
    a, b = ([event for event in accepted if event.topic == topic] for topic in ("events-a", "events-b"))
    pairs = list(_pairs(a, b))
    answered = Counter(json.dumps(row, sort_keys=True) for key, row in pairs if row["new_limit"] is not None and not _is_down(key))
    return Expectation(
        rows=answered.total(),
        quarantined=sum(event.time_ms is None for event in judged),
        late=sum(event.late for event in judged),
        exact=answered,
        side_outputs={"failed": len(pairs) - answered.total()},
    )


def _topic(topic: str, amount: str, partitions: int, seed: int) -> Iterator[Record]:
    for name, time in WORKED_EXAMPLE[topic].items():
        yield _event(partitions, "token123", f"{EXAMPLE_DAY}T{time}+00:00", amount, 100.0, user_id=f"example-{name}")
    yield from _traffic(random.Random(seed), amount, partitions)
    for partition in range(partitions):
        flush = {"token": f"flush-{topic}-{partition}", "event_timestamp": FLUSH_TIME.isoformat()}
        yield Record(json.dumps(flush).encode(), partition=partition, flush=True)


def _traffic(random_: random.Random, amount: str, partitions: int) -> Iterator[Record]:
    """Half an hour of events in the order of arrival."""
    arrivals: list[tuple[float, Record]] = []
    for number in range(EVENTS):
        at_s = random_.uniform(0, 1_800)
        # Events within the bound of 10 s are in time for any micro-batches; one in 100 arrives minutes later.
        delay_s = random_.uniform(60, 1_200) if random_.random() < 0.01 else random_.uniform(0, 9.9)
        record = _one_event(random_, amount, partitions, at_s, number)
        arrivals.append((at_s + delay_s, record))
        if random_.random() < 0.01:
            arrivals.append((at_s + delay_s + random_.uniform(0, 2), record))
    arrivals.sort(key=lambda arrival: arrival[0])
    return (record for _, record in arrivals)


def _one_event(random_: random.Random, amount: str, partitions: int, at_s: float, number: int) -> Record:
    # A token is used for some two minutes, so that its events of A and B are within the join's bounds or just outside.
    token = f"token-{int(at_s / 120)}-{random_.randrange(12_000)}"
    moment = TRAFFIC_BEGINS + timedelta(milliseconds=int(at_s * 1000))
    zone = (UTC, _INDIA)[number % 2]
    text = moment.astimezone(zone).isoformat(timespec="milliseconds")
    event = _event(partitions, token, text, amount, round(random_.uniform(1, 5_000), 2), user_id=f"user-{random_.randrange(9_000)}")
    return _broken(random_, event) if random_.random() < 0.005 else event


def _event(partitions: int, token: str, time: str, amount: str, value: float, user_id: str) -> Record:
    body = {"token": token, "event_timestamp": time, "user_id": user_id, amount: value}
    return Record(json.dumps(body).encode(), key=token.encode(), partition=zlib.crc32(token.encode()) % partitions)


def _broken(random_: random.Random, record: Record) -> Record:
    """The same record as sent by a broken producer."""
    value = record.value or b""
    body = json.loads(value)
    ways = (
        value[: len(value) // 2],
        b"\xff\xfe" + value,
        b"",
        json.dumps(body | {"event_timestamp": "05/04/2025 13:00"}).encode(),
        json.dumps(body | {"event_timestamp": body["event_timestamp"][:19]}).encode(),
        json.dumps({key: item for key, item in body.items() if key != "token"}).encode(),
        json.dumps(body | {"token": None}).encode(),
    )
    return Record(random_.choice(ways), key=record.key, partition=record.partition)


def _time_ms(value: bytes | None) -> int | None:
    """Event time of a record; None if it does not parse."""
    try:
        body = json.loads((value or b"").decode("utf-8"))
        moment = datetime.fromisoformat(body["event_timestamp"])
    except (ValueError, KeyError, TypeError):
        return None
    if moment.tzinfo is None or body.get("token") is None:
        return None
    return int((moment - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(milliseconds=1))


def _pairs(left: list[Judged], right: list[Judged]) -> Iterator[tuple[str, dict[str, object]]]:
    """Each pair: the key that its call must have, and its row."""
    by_token: dict[str, list[tuple[Judged, dict[str, object]]]] = defaultdict(list)
    for event in right:
        body = _body(event.record)
        by_token[str(body["token"])].append((event, body))
    for event in left:
        a = _body(event.record)
        for other, b in by_token[str(a["token"])]:
            if abs((other.time_ms or 0) - (event.time_ms or 0)) <= WITHIN_MS:
                yield f"{_place(event)}/{_place(other)}", _row(a, b)


def _place(event: Judged) -> str:
    return f"{event.topic}-{event.record.partition}-{event.record.offset}"


def _row(a: dict[str, object], b: dict[str, object]) -> dict[str, object]:
    pair = {"amount": a.get("amount"), "credit_limit": b.get("credit_limit")}
    return {
        "token": a["token"],
        "user_id": a.get("user_id"),
        **pair,
        "new_limit": new_limit(pair),
        "a_timestamp": a["event_timestamp"],
        "b_timestamp": b["event_timestamp"],
    }


def _body(record: Recorded) -> dict[str, object]:
    body: dict[str, object] = json.loads(record.value or b"")
    return body
