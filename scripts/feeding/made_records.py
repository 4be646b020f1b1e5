"""Records made from the schema that an app declares for a source: plausible values by type, and the event time at which they are made."""

from __future__ import annotations

import base64
import csv
import io
import json
from collections.abc import Callable, Mapping
from datetime import datetime
from random import Random
from typing import Any

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from penstock.jobs.local.recording import Record
from penstock.jobs.sources.debezium_values import METADATA
from penstock.jobs.spec import Csv, EventTime, FromKafka
from penstock.scripts.feeding.errors import NothingToFeed
from penstock.scripts.feeding.event_times import written_at

# Few enough that keys come again, as joins and aggregations need it.
_KEYS = 100
_MOST_ITEMS = 3
_WORDS = ("river", "gate", "turbine", "penstock", "valve", "spillway", "reservoir", "flow")

_Make = Callable[[Random, datetime], Any]
_MADE: dict[type[DataType], _Make] = {
    BooleanType: lambda random, now: random.random() < 0.5,
    ByteType: lambda random, now: random.randrange(_KEYS),
    ShortType: lambda random, now: random.randrange(1_000),
    IntegerType: lambda random, now: random.randrange(1_000),
    LongType: lambda random, now: random.randrange(1_000),
    FloatType: lambda random, now: round(random.uniform(0, 1_000), 2),
    DoubleType: lambda random, now: round(random.uniform(0, 1_000), 2),
    DateType: lambda random, now: now.date().isoformat(),
    TimestampType: lambda random, now: written_at("iso-8601", now),
    TimestampNTZType: lambda random, now: now.replace(tzinfo=None).isoformat(timespec="milliseconds"),
    BinaryType: lambda random, now: base64.b64encode(random.randbytes(8)).decode(),
}


class RecordMaker:
    """Makes the records of a source.

    Args:
        name: of the source.
        source: of the spec.
        fields: as the app declares them.
        random: decides the values; the event times are those of the clock.

    Raises:
        NothingToFeed: FEED-002, values of a format or a type that can't be made.
    """

    def __init__(self, name: str, source: FromKafka, fields: StructType, random: Random) -> None:
        self._path, self._source, self._fields, self._random = f"spec.sources.{name}", source, fields, random
        if source.kafka.value == "avro":
            raise self._refused("value: avro", "a generator in local.input: records are made of JSON, CSV, text and bytes")

    def record(self, now: datetime) -> Record:
        """A record with this event time."""
        kafka = self._source.kafka
        if kafka.value in ("text", "bytes"):
            return Record(" ".join(self._random.choices(_WORDS, k=5)).encode())
        values = self._struct(self._fields, now, self._source.time)
        key = None if kafka.key is None else self._key(values, kafka.key.fields, as_json=kafka.key.format == "json")
        if kafka.value == "csv":
            return Record(self._line(values, kafka.csv or Csv()), key)
        if kafka.value == "debezium":
            values = self._event(values, now)
        return Record(json.dumps(values, ensure_ascii=False).encode(), key)

    def _event(self, row: dict[str, Any], now: datetime) -> dict[str, Any]:
        """The change event of a row that is created; fields of the event itself are no columns of the row."""
        after = {name: value for name, value in row.items() if not name.startswith(METADATA)}
        at = int(now.timestamp() * 1000)
        return {"before": None, "after": after, "source": {"ts_ms": at}, "op": "c", "ts_ms": at}

    def _struct(self, fields: StructType, now: datetime, time: EventTime | None = None) -> dict[str, Any]:
        return {
            field.name: self._event_time(field.dataType, time.format, now)
            if time is not None and time.field == field.name
            else self._value(field.name, field.dataType, now)
            for field in fields.fields
        }

    def _event_time(self, kind: DataType, form: str, now: datetime) -> str | int:
        if isinstance(kind, TimestampType):
            return written_at("iso-8601", now)
        at = written_at(form, now)
        return str(at) if isinstance(kind, StringType) else at

    def _value(self, name: str, kind: DataType, now: datetime) -> Any:
        if isinstance(kind, StringType):
            return f"{name}-{self._random.randrange(_KEYS)}"
        if isinstance(kind, DecimalType):
            whole = min(kind.precision - kind.scale, 6)
            return round(self._random.uniform(0, 10**whole - 1), min(kind.scale, 6)) if kind.scale else self._random.randrange(10**whole)
        if isinstance(kind, StructType):
            return self._struct(kind, now)
        if isinstance(kind, ArrayType):
            return [self._value(name, kind.elementType, now) for _ in range(self._random.randint(1, _MOST_ITEMS))]
        if isinstance(kind, MapType):
            return {f"{name}-{number}": self._value(name, kind.valueType, now) for number in range(self._random.randint(1, _MOST_ITEMS))}
        make = _MADE.get(type(kind))
        if make is None:
            raise self._refused(f"{name} {kind.simpleString()}", "a generator in local.input: values of this type are not made")
        return make(self._random, now)

    def _line(self, values: Mapping[str, Any], form: Csv) -> bytes:
        text = io.StringIO()
        cells = [str(value).lower() if isinstance(value, bool) else value for value in values.values()]
        csv.writer(text, delimiter=form.separator, quotechar=form.quote, lineterminator="").writerow(cells)
        return text.getvalue().encode()

    def _key(self, values: Mapping[str, Any], fields: list[str], *, as_json: bool) -> bytes:
        key = json.dumps({name: values[name] for name in fields}) if as_json else str(values[fields[0]])
        return key.encode()

    def _refused(self, given: str, need: str) -> NothingToFeed:
        return NothingToFeed(path=self._path, given=given, need=need, fix="add spec.local.input for its topics")
