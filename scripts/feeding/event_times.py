"""Event times of records that are fed: the time at which they are written, in the form that the source reads."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from penstock.jobs.local.recording import Record
from penstock.jobs.spec import EventTime

_TICKS_PER_S = {"epoch-seconds": 1, "epoch-millis": 1_000, "epoch-micros": 1_000_000}
_NUMBER = re.compile(r"-?[0-9]{1,20}(\.[0-9]{1,9})?")


def written_at(form: str, now: datetime) -> str | int:
    """A time in one of the formats of a spec.

    Args:
        form: ``time.format`` of a source.
        now: the time, in UTC.
    """
    if form == "iso-8601":
        return now.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return int(now.timestamp() * 1000) * _TICKS_PER_S[form] // 1000


def time_ms(given: Any, form: str) -> float | None:
    """A valid event time in epoch milliseconds; None for anything else.

    Args:
        given: value of the field.
        form: ``time.format`` of a source.
    """
    if not _is_time(given, form):
        return None
    if form == "iso-8601":
        return datetime.fromisoformat(given).timestamp() * 1000
    return float(given) * 1000 / _TICKS_PER_S[form]


def moved(record: Record, time: EventTime | None, now: datetime) -> Record:
    """A record with another event time; unchanged if its value is not JSON with a valid one, as a generator may intend.

    Args:
        record: of a generator.
        time: how the source reads its event time; None: it has none.
        now: the time, in UTC.
    """
    if time is None or time.field is None or record.value is None:
        return record
    try:
        value = json.loads(record.value)
    except ValueError:
        return record
    if not isinstance(value, dict) or not _is_time(value.get(time.field), time.format):
        return record
    at = written_at(time.format, now)
    value[time.field] = str(at) if isinstance(value[time.field], str) else at
    return replace(record, value=json.dumps(value, ensure_ascii=False).encode())


def _is_time(given: Any, form: str) -> bool:
    if form != "iso-8601":
        is_number = isinstance(given, int | float) and not isinstance(given, bool)
        return is_number or (isinstance(given, str) and _NUMBER.fullmatch(given) is not None)
    try:
        return isinstance(given, str) and "T" in given and datetime.fromisoformat(given).tzinfo is not None
    except ValueError:
        return False
