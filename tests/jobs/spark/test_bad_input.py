"""Any content of a record becomes a row or a reason. Tests values only, on a frame of records."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import fastavro
import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from penstock.jobs.errors import BadDeclaration
from penstock.jobs.sources.avro_values import AvroSchema
from penstock.jobs.sources.fields import field, named_fields
from penstock.jobs.sources.values import Values, read
from penstock.jobs.spec import Avro, Csv, KafkaKey

NOT_JSON, NOT_CSV = "the value is not JSON of the source's schema", "the value is not CSV of the source's schema"
SCHEMA = "user STRING NOT NULL, n INT, x DOUBLE"
AVSC = {
    "type": "record",
    "name": "Click",
    "fields": [
        {"name": "user", "type": "string"},
        {"name": "n", "type": ["null", "int"]},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
    ],
}


def _read(
    session: SparkSession, values: Values, schema: str, records: Sequence[bytes | tuple[bytes | None, bytes | None] | None]
) -> list[Any]:
    """For each record, keys before values: its reason, or its fields that are not null."""
    pairs = [record if isinstance(record, tuple) else (None, record) for record in records]
    frame = session.createDataFrame([(place, *pair) for place, pair in enumerate(pairs)], "place INT, key BINARY, value BINARY")
    fields = StructType.fromDDL(schema)
    assert isinstance(fields, StructType)
    rows = (
        read(frame.coalesce(1), values, fields, "here")
        .orderBy("place")
        .select("_reason", F.when(F.col("_reason").isNull(), F.struct(*named_fields(fields))).alias("fields"))
        .collect()
    )
    return [row["_reason"] or {name: value for name, value in row["fields"].asDict().items() if value is not None} for row in rows]


def _held(session: SparkSession, values: Values, schema: str, expected: Mapping[bytes, Any]) -> None:
    outcomes = dict(zip(expected, _read(session, values, schema, list(expected)), strict=True))
    wrong = {value[:60]: (outcomes[value], expected[value]) for value in expected if outcomes[value] != expected[value]}
    assert not wrong, "value: (found, expected)"


def test_json_is_one_object_of_the_schema_and_nothing_after_it(session: SparkSession) -> None:
    row = {"user": "u", "n": 1}
    _held(
        session,
        Values("json"),
        SCHEMA,
        {
            b'{"user": "u", "n": 1}': row,
            b' {"n": 1, "user": "u"} \n': row,
            b"": NOT_JSON,
            b"null": NOT_JSON,
            b"7": NOT_JSON,
            b'[{"user": "u", "n": 1}]': NOT_JSON,
            b'{"user": "u", "n": 1': NOT_JSON,
            b"{'user': 'u', 'n': 1}": NOT_JSON,
            # Spark's parser would read the first object of these, and lose the rest.
            b'{"user": "u", "n": 1}{"user": "v", "n": 2}': NOT_JSON,
            b'{"user": "u", "n": 1}\n{"user": "v", "n": 2}': NOT_JSON,
            b'{"user": "u", "n": 1}, {"user": "v", "n": 2}': NOT_JSON,
            b'{"user": "u", "n": 1} and more': NOT_JSON,
            b'{"user": "u", "n": 1}}': NOT_JSON,
            b'{"user": "u", "n": 1}]} and more': NOT_JSON,
            b'{"user": "u", "n": 1}, {"user": "v"}]} and more': NOT_JSON,
        },
    )


def test_a_malformed_record_is_reported_with_its_reason(session: SparkSession) -> None:
    deep = b'{"user": "u", "other": ' + b'{"a": ' * 10_000 + b"1" + b"}" * 10_001
    _held(
        session,
        Values("json"),
        SCHEMA,
        {
            b'\xff\xfe{"user": "u"}': "the value is not UTF-8",
            b'{"user": "caf\xe9"}': "the value is not UTF-8",
            deep: NOT_JSON,
            b"[" * 10_000 + b"]" * 10_000: NOT_JSON,
            b'{"user": "' + b"u" * 1_000_000: NOT_JSON,
            b"\x00" * 1_000_000: NOT_JSON,
        },
    )
    whole = b'{"user": "' + b"u" * 1_000_000 + b'"}'
    assert _read(session, Values("json"), SCHEMA, [whole, None]) == [{"user": "u" * 1_000_000}, "the record has no value"]


ROW, CHANGED = {"user": "u", "n": 1}, {"user": "v", "n": 2}
NOT_ONE, NO_EVENT = "the value is not one JSON object", "the value is not a change event of Debezium: it has no op"


def _event(op: str, before: object, after: object, **more: object) -> bytes:
    return json.dumps({"before": before, "after": after, "op": op, **more}).encode()


def test_a_change_event_gives_the_row_that_it_leaves_or_removes(session: SparkSession) -> None:
    created, removed = _event("c", None, ROW), _event("d", ROW, None)
    _held(
        session,
        Values("debezium"),
        SCHEMA,
        {
            created: ROW,
            _event("r", None, ROW): ROW,
            _event("u", ROW, CHANGED): CHANGED,
            b'{"schema": {"type": "struct"}, "payload": ' + _event("u", None, CHANGED) + b"}": CHANGED,
            removed: ROW,
            # A database that logs the key alone.
            _event("d", {"n": 1, "user": None}, None): {"n": 1},
            _event("d", None, None): "the change event has no row: op is d without before",
            _event("c", ROW, None): "the change event has no row: op is c without after",
            _event("t", None, None): "the change event is no change of a row: op is t",
            _event("u", None, {"n": 1}): "user is missing",
            _event("u", None, {"user": "u", "n": "1"}): f"{NOT_JSON}: n is not int",
            _event("u", None, "u"): NOT_JSON,
            b"{}": NO_EVENT,
            b'{"payload": null}': NO_EVENT,
            b"7": NO_EVENT,
            b"": NOT_ONE,
            b"no JSON": NOT_ONE,
            b"\xff" + created: "the value is not UTF-8",
            # Of two events neither is taken.
            created + removed: NOT_ONE,
            created + b"," + removed: NOT_ONE,
            created + b"] and more [": NOT_ONE,
            created[:-1]: NOT_ONE,
            b'{"op": "c", "other": ' + b'{"a": ' * 10_000 + b"1" + b"}" * 10_001: NOT_ONE,
        },
    )


def test_a_change_event_has_its_own_fields_and_a_delete_is_marked(session: SparkSession) -> None:
    schema = "user STRING NOT NULL, d DECIMAL(38,18), __op STRING, __ts_ms BIGINT, __source_lsn BIGINT, __source_table STRING"
    exact = b'{"op":"c","ts_ms":5,"source":{"lsn":77,"table":"t\\"t"},"after":{"user":"u","d":12345678901234567890.123456789012345678}}'
    own = {"__op": "c", "__ts_ms": 5, "__source_lsn": 77, "__source_table": 't"t'}
    assert _read(session, Values("debezium"), schema, [exact, _event("d", {}, None), _event("c", None, {"user": "u"})]) == [
        {"user": "u", "d": Decimal("12345678901234567890.123456789012345678"), **own},
        {"__op": "d"},
        {"user": "u", "__op": "c"},
    ]
    fields = StructType.fromDDL(SCHEMA)
    assert isinstance(fields, StructType)
    key = KafkaKey(fields=["n"], format="json")
    pairs = [
        (b"{}", _event("c", None, ROW)),
        (b"{}", _event("d", ROW, None)),
        (b'{"schema": {}, "payload": {"n": 1}}', None),
        (b'{"n": 2}', None),
    ]
    frame = session.createDataFrame(pairs, "key BINARY, value BINARY").coalesce(1)
    rows = (
        read(frame, Values("debezium", deletes=key), fields, "here").select(field("n").alias("n"), "_deleted", "_reason", "value").collect()
    )
    assert [(row["n"], row["_deleted"], row["_reason"]) for row in rows] == [
        (1, False, None),
        (1, True, None),
        (1, True, None),
        (2, True, None),
    ]
    assert [row["value"] for row in rows] == [value for _, value in pairs], "what is quarantined is the record's own value"


def test_a_schema_that_drifts_loses_no_record(session: SparkSession) -> None:
    _held(
        session,
        Values("json"),
        SCHEMA,
        {
            # Additional fields are dropped, missing ones are null unless required.
            b'{"user": "u", "n": 1, "new": {"a": [1, 2]}}': {"user": "u", "n": 1},
            b'{"user": "u"}': {"user": "u"},
            b'{"n": 1}': "user is missing",
            b'{"user": null, "n": 1}': "user is missing",
            # Fields of another type are reported by name.
            b'{"user": "u", "n": "1"}': f"{NOT_JSON}: n is not int",
            b'{"user": "u", "n": 1.5}': f"{NOT_JSON}: n is not int",
            b'{"user": "u", "n": 99999999999}': f"{NOT_JSON}: n is not int",
            b'{"user": "u", "x": "much"}': f"{NOT_JSON}: x is not double",
            b'{"user": "u", "x": [1]}': f"{NOT_JSON}: x is not double",
            # A STRING accepts any value as its text.
            b'{"user": 5}': {"user": "5"},
            b'{"user": {"id": 5}}': {"user": '{"id":5}'},
        },
    )


def test_csv_has_the_columns_of_the_schema(session: SparkSession) -> None:
    _held(
        session,
        Values("csv"),
        SCHEMA,
        {
            b"u,1,0.5": {"user": "u", "n": 1, "x": 0.5},
            b"u,,\r\n": {"user": "u"},
            b'"u, ""v""",1,': {"user": 'u, "v"', "n": 1},
            b'"two\nlines",1,': {"user": "two\nlines", "n": 1},
            b"": "the value is empty",
            b"u,1": NOT_CSV,
            b"u,1,0.5,more": NOT_CSV,
            b"u,one,": NOT_CSV,
            b"u,1,0.5\nv,2,0.5": NOT_CSV,
            b'"u,1,0.5': "the value is not CSV: a quote is not closed",
            b"\xffu,1,": "the value is not UTF-8",
            b",1,": "user is missing",
            b"," * 30_000: NOT_CSV,
        },
    )
    assert _read(session, Values("csv", csv=Csv(separator="|", quote="'")), SCHEMA, [b"'u|v'|1|"]) == [{"user": "u|v", "n": 1}]


def test_text_and_bytes_are_the_one_field(session: SparkSession) -> None:
    assert _read(session, Values("text"), "line STRING", [b"a b", b"", b"\xff"]) == [
        {"line": "a b"},
        {"line": ""},
        "the value is not UTF-8",
    ]
    assert _read(session, Values("bytes"), "raw BINARY", [b"\xff\x00", None]) == [
        {"raw": bytearray(b"\xff\x00")},
        "the record has no value",
    ]
    for form, schema in (("text", "a STRING, b STRING"), ("text", "a INT"), ("bytes", "a STRING")):
        with pytest.raises(BadDeclaration, match="one field"):
            _read(session, Values(form), schema, [])  # type: ignore[arg-type]


def _avro(row: Mapping[str, Any], schema: Mapping[str, Any] = AVSC) -> bytes:
    written = io.BytesIO()
    fastavro.schemaless_writer(written, fastavro.parse_schema(json.loads(json.dumps(schema))), row)
    return written.getvalue()


def _avro_values(**avro: Any) -> Values:
    return Values("avro", avro=AvroSchema(json.dumps(AVSC), Avro.model_validate({"schemaFile": "click.avsc", **avro})))


def test_avro_is_read_by_the_schema_of_its_writer_and_to_its_end(session: SparkSession) -> None:
    row = {"user": "u", "n": 1, "tags": ["a", "b"]}
    wider = {**AVSC, "fields": [*AVSC["fields"], {"name": "new", "type": "string"}]}
    not_avro = "the value is not Avro of click.avsc"
    _held(
        session,
        _avro_values(),
        "n BIGINT, user STRING NOT NULL, tags ARRAY<STRING>",
        {
            _avro(row): row,
            _avro({"user": "u", "n": None, "tags": []}): {"user": "u", "tags": []},
            b"": not_avro,
            _avro(row)[:-2]: not_avro,
            b"\xff" * 20: not_avro,
            # A text of 2 GiB, and one of negative length.
            b"\xfe\xff\xff\xff\x0f" + b"u" * 20: not_avro,
            b"\xff\xff\xff\xff\x0f": not_avro,
            # A value written with another schema would decode to a row.
            _avro(row | {"new": "more"}, wider): "the value has more bytes than click.avsc takes",
        },
    )


def test_avro_of_a_schema_registry_has_its_frame(session: SparkSession) -> None:
    datum = _avro({"user": "u", "n": 1, "tags": []})
    _held(
        session,
        _avro_values(framing="confluent", schemaId=258),
        "user STRING",
        {
            b"\x00\x00\x00\x01\x02" + datum: {"user": "u"},
            b"\x00\x00\x00\x01\x03" + datum: "the schema's number is not 258: 259",
            b"\x01\x00\x00\x01\x02" + datum: "the value has no frame of a schema registry",
            b"\x00\x00": "the value has no frame of a schema registry",
        },
    )


def test_an_app_may_only_use_fields_of_its_avro_schema(session: SparkSession) -> None:
    with pytest.raises(BadDeclaration, match=r"a field of click\.avsc: user, n, tags"):
        _read(session, _avro_values(), "usr STRING", [])
    with pytest.raises(BadDeclaration, match="n INT, as"):
        _read(session, _avro_values(), "n STRING", [])
    broken = Values("avro", avro=AvroSchema('{"type": "recrd"}', Avro.model_validate({"schemaFile": "click.avsc"})))
    with pytest.raises(BadDeclaration, match="a valid Avro schema"):
        _read(session, broken, "n INT", [])


def test_a_tombstone_is_a_row_of_its_key(session: SparkSession) -> None:
    by_number = Values("json", deletes=KafkaKey(fields=["n"]))
    assert _read(session, by_number, SCHEMA, [(b"7", None), (b"seven", None), (None, None), (b"\xff", None), (b"7", b'{"user": "u"}')]) == [
        {"n": 7},
        "the key has no n of type int",
        "the record has neither value nor key",
        "the key is not UTF-8",
        {"user": "u"},
    ]
    by_both = Values("json", deletes=KafkaKey(fields=["user", "n"], format="json"))
    assert _read(session, by_both, SCHEMA, [(b'{"user": "u", "n": 1}', None), (b'{"user": "u"}', None), (b"u", None)]) == [
        {"user": "u", "n": 1},
        "the key has no n of type int",
        "the key has no user of type string",
    ]
    with pytest.raises(BadDeclaration, match="the fields of the source's key: other"):
        _read(session, Values("json", deletes=KafkaKey(fields=["other"])), SCHEMA, [])


def test_a_timestamp_is_an_instant_and_nothing_that_needs_a_time_zone_to_be_one(session: SparkSession) -> None:
    moment = datetime(2025, 4, 5, 12, 30, 0, 123456, tzinfo=UTC)
    schema = "at TIMESTAMP, all ARRAY<STRUCT<at: TIMESTAMP>>, by MAP<STRING, TIMESTAMP>"
    guesses = ["2025-04-05", "2025-04-05T12:30:00", "2025-04-05 12:30:00Z", "2025", "12:30", "", "now"]
    good = {f'{{"at": "{text}"}}'.encode(): {"at": moment} for text in ("2025-04-05T12:30:00.123456Z", "2025-04-05T14:30:00.123456+02:00")}
    bad = {f'{{"at": "{text}"}}'.encode(): f"{NOT_JSON}: at is not timestamp" for text in guesses}
    bad |= {f'{{"at": {value}}}'.encode(): f"{NOT_JSON}: at is not timestamp" for value in ("1743856200", "2025", "1.5", "true")}
    within = {
        b'{"all": [{"at": null}, {"at": "2025-04-05T12:30:00.123456Z"}], "by": {"a": null}}': {
            "all": [Row(at=None), Row(at=moment)],
            "by": {"a": None},
        },
        b'{"all": [{"at": "2025-04-05"}]}': NOT_JSON,
        b'{"by": {"a": 7}}': NOT_JSON,
    }
    found = dict(zip([*good, *bad, *within], _read(session, Values("json"), schema, [*good, *bad, *within]), strict=True))
    assert {value: _in_utc(fields) for value, fields in found.items()} == good | bad | within
    lines = [b"2025-04-05T12:30:00.123456Z", b"2025-04-05", b"1743856200", b"2025-04-05T12:30:00"]
    rows = _read(session, Values("csv"), "at TIMESTAMP", lines)
    assert [_in_utc(fields) for fields in rows] == [{"at": moment}, NOT_CSV, NOT_CSV, NOT_CSV]


def _in_utc(value: Any) -> Any:
    """PySpark returns times in the zone of the machine."""
    if isinstance(value, datetime):
        return value.astimezone(UTC)
    if isinstance(value, Row):
        return Row(**{name: _in_utc(inner) for name, inner in value.asDict().items()})
    if isinstance(value, dict):
        return {name: _in_utc(inner) for name, inner in value.items()}
    return [_in_utc(inner) for inner in value] if isinstance(value, list) else value


def test_a_time_outside_pythons_range_is_quarantined(session: SparkSession) -> None:
    # A Python task would fail on it at every attempt.
    kinds = ["at TIMESTAMP", "here TIMESTAMP_NTZ", "day DATE", "all ARRAY<STRUCT<at: TIMESTAMP>>", "by MAP<STRING, DATE>"]
    schema = ", ".join(kinds)
    message = "is not within the years 0001 to 9999"
    _held(
        session,
        Values("json"),
        schema,
        {
            b'{"day": "9999-12-31", "by": {"a": null}}': {"day": date(9999, 12, 31), "by": {"a": None}},
            b'{"day": "0001-01-01", "at": null, "all": []}': {"day": date(1, 1, 1), "all": []},
            b'{"at": "10000-01-01T00:00:00Z"}': f"at {message}",
            b'{"at": "0001-01-01T00:00:00+14:00"}': f"at {message}",
            b'{"here": "10000-01-01T00:00:00"}': f"here {message}",
            b'{"day": "+10000-01-01"}': f"day {message}",
            b'{"all": [{"at": null}, {"at": "0000-12-31T23:59:59Z"}]}': f"all {message}",
            b'{"by": {"a": "2025-04-05", "b": "10000-01-01"}}': f"by {message}",
        },
    )
    assert _read(session, Values("csv"), "day DATE", [b"2025-04-05", b"10000-01-01"]) == [{"day": date(2025, 4, 5)}, f"day {message}"]
    clock = {"type": "record", "name": "Clock", "fields": [{"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}}]}
    plain = {**clock, "fields": [{"name": "at", "type": "long"}]}
    avro = Values("avro", avro=AvroSchema(json.dumps(clock), Avro.model_validate({"schemaFile": "clock.avsc"})))
    assert _read(session, avro, "at TIMESTAMP", [_avro({"at": moment}, plain) for moment in (2**62, -(2**62))]) == [f"at {message}"] * 2
    by_day = Values("json", deletes=KafkaKey(fields=["day"]))
    assert _read(session, by_day, "day DATE", [(b"10000-01-01", None)]) == [f"the key's day {message}"]


@pytest.mark.timeout(120)
def test_a_decimal_that_would_be_written_out_for_minutes_is_quarantined(session: SparkSession) -> None:
    schema = "user STRING, amount DECIMAL(10,2), all ARRAY<DECIMAL(38,9)>, x DOUBLE"
    no_amount, ten = f"{NOT_JSON}: amount is not decimal(10,2)", Decimal("10.00")
    _held(
        session,
        Values("json"),
        schema,
        {
            b'{"user": "u", "amount": 1e2147483647}': no_amount,
            b'{"user": "u", "amount": 0.0E-2147483647}': no_amount,
            b'{"user": "u", "amount": "1e+99999"}': no_amount,
            b'{"user": "u", "all": [1, -5.5e999999999]}': f"{NOT_JSON}: all is not array<decimal(38,9)>",
            b'{"user": "u", "amount": 1e999999999': NOT_JSON,
            b'{"user": "u", "amount": 1e999999999, "amount": 1}': NOT_JSON,
            # It is elsewhere in the text, which is left unchanged.
            b'{"user": "3f1e99999", "amount": 1e1}': {"user": "3f1e99999", "amount": ten},
            b'{"amount": 1e1, "x": 1e-99999, "new": 1e999999999}': {"amount": ten, "x": 0.0},
        },
    )
    csv = _read(session, Values("csv"), "user STRING, amount DECIMAL(10,2)", [b"u,1e999999999", b"3f1e99999,1e1"])
    assert csv == [NOT_CSV, {"user": "3f1e99999", "amount": ten}]
    for form, key in (("json", b'{"amount": 1e999999999}'), ("text", b"1e-999999999"), ("text", b"1e999999999")):
        keyed = Values("json", deletes=KafkaKey.model_validate({"fields": ["amount"], "format": form}))
        (outcome,) = _read(session, keyed, schema, [(key, None)])
        assert outcome in ("the key has no amount of type decimal(10,2)", {"amount": Decimal("0.00")})
