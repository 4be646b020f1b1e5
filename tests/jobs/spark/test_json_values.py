"""JSON values of the common form are read by Penstock's own function, and by Spark's ``from_json`` the same."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from penstock.jobs.sources import plain_json
from penstock.jobs.sources.fields import named_fields
from penstock.jobs.sources.values import Values, read

SCHEMA = "user STRING NOT NULL, n INT, big BIGINT, x DOUBLE, f FLOAT, price DECIMAL(8, 2), d DECIMAL(38, 0), is_on BOOLEAN, at TIMESTAMP"
# No value of these tests has the field: it only makes Spark read every value.
READ_BY_SPARK = ", other DATE"
NESTED = (
    "user STRING NOT NULL, who STRUCT<name: STRING, age: INT, seen: TIMESTAMP>, tags ARRAY<STRING>, "
    "places ARRAY<STRUCT<x: DOUBLE, y: ARRAY<INT>>>"
)
NESTED_ROW = (
    '{"user": "u", "who": {"name": "é", "age": 7, "seen": "2025-04-05T12:30:00Z"}, "tags": ["a", null], '
    '"places": [{"x": 1, "y": [1, 2]}, null, {"y": []}]}'
)
ROW = '{"user": "u", "n": 1, "big": 2, "x": 1.5, "f": 2.5, "price": 9.99, "d": 7, "is_on": true, "at": "2025-04-05T12:30:00Z"}'
# What a field may have in a value, as text of JSON; some are not JSON.
FIELDS = [
    *("null", "true", "false", "0", "-0", "1", "-1", "01", "+1", "1.", ".5", "1.0", "1e2", "1E400", "-1e-400", "1e99999999", "0x1"),
    *("2147483647", "2147483648", "-2147483649", "9223372036854775807", "9223372036854775808", "1" * 30, "1" * 1_001, "0." + "3" * 900),
    *("NaN", "Infinity", "-Infinity", '"NaN"', '"Infinity"', '""', '"1"', '" 1"', '"true"', "tru", "True", "nul", "undefined"),
    *('"\\u0000"', '"\\ud83d\\ude00"', '"\\ud800"', '"\\udc00x"', '"\\x41"', '"\\u12"', '"\\/"', '"tab\there"', '"line\nhere"', '"\x7f"'),
    *('"é"', '"日本"', '"😀"', '"\ufeff"', '"\ufffd"', '"\u2028"', "'single'", '"a" "b"', '"a', "{}", '{"a": 1}', '{"a": {"b": []}}'),
    *("[]", "[1, 2]", '["a", {"b": null}]', "[1,]", '{"a": 1,}', "/* none */ 1", "1 // none", '"2025-04-05T12:30:00.123456+02:00"'),
    *("999999.994", "999999.995", "-999999.999", "0.005", "-0.005", "0.004", "1e3", "1E-3", "9" * 38, "9" * 39, "0.1234567890123456789"),
    *('"2025-04-05"', '"12025-04-05T12:30:00Z"', "1743854400000", "1743854400.5"),
]
# Values with something around the object, or without one.
AROUND = [
    *(
        "",
        " ",
        "null",
        "7",
        '"u"',
        "[]",
        f"[{ROW}]",
        f" {ROW}\n",
        f"\t{ROW}\r\n ",
        f"{ROW}{ROW}",
        f"{ROW},{ROW}",
        f"{ROW} null",
        f"{ROW}}}",
    ),
    *(
        f"{ROW}\x00",
        f"\x00{ROW}",
        f"{{\x00{ROW[1:]}",
        f"\ufeff{ROW}",
        f"{ROW}]}}",
        f"{ROW},",
        f"{ROW}// more",
        ROW[:-1],
        ROW[1:],
        "{}",
        "{",
    ),
    *("{,}", '{"user"}', '{"user":}', '{user: "u"}', "{'user': 'u'}", '{"user" "u"}', '{"user": "u",}', '{"user": "u" "n": 1}'),
    *('{"user": "u", "n": 1, "n": 2}', '{"user": "u", "n": 1, "n": null}', '{"user": "u", "n": null, "n": 1}', '{"user": "u", "user": 7}'),
    *(
        '{"user": "u", "more": 1, "more": 2}',
        '{"User": "u"}',
        '{"us\\u0065r": "u"}',
        '{"user": "u", "_corrupt": "c"}',
        '{"": 1, "user": "u"}',
    ),
    *('{"user": "u", "_penstock_end": true}', '{"user": "u"},{"_penstock_end":true}', f'{{"user": "u", "more": {"[" * 999}{"]" * 999}}}'),
    *(f'{{"user": "u", "more": {"[" * 1_001}{"]" * 1_001}}}', f'{{"user": "{"u" * 70_000}"}}', f'{{"user": "u", "{"k" * 60_000}": 1}}'),
]
BYTES = [
    *(b"\xff\xfe" + ROW.encode("utf-16-le"), ROW.encode("utf-16-le"), ROW.encode("utf-16-be"), ROW.encode("utf-32-be"), b"\x00"),
    *(b'{"user": "caf\xe9"}', b'{"user": "\xc0\x80"}', b'{"user": "\xed\xa0\x80"}', b'{"user": "\xf4\x90\x80\x80"}', b'{"user": "u"}\xff'),
    *(b'{"user": "u", "more": "\xff"}', b'{"user": "u", "\xc3\xa9": 1}', b'{"user": "u", "\xc3": 1}'),
]


def _outcomes(session: SparkSession, schema: str, values: Sequence[bytes]) -> list[Any]:
    """For each value its reason, or its fields that are not null as text, in which NaN is equal to itself and -0.0 is not 0.0."""
    frame = session.createDataFrame(list(enumerate(map(bytearray, values))), "place INT, value BINARY").coalesce(1)
    fields = StructType.fromDDL(schema)
    assert isinstance(fields, StructType)
    rows = (
        read(frame, Values("json"), fields, "here")
        .orderBy("place")
        .select("_reason", F.when(F.col("_reason").isNull(), F.struct(*named_fields(fields))).alias("fields"))
        .collect()
    )
    return [row["_reason"] or repr({name: value for name, value in row["fields"].asDict().items() if value is not None}) for row in rows]


def _changed(seed: int, count: int, *texts: str) -> Iterator[bytes]:
    """Values with some bytes taken out, put in or repeated."""
    random_ = random.Random(seed)
    alphabet = b"{}[]\":,\\/ \n\t\x00\x1f\x7f\xc3\xa9\xff0123456789.eE+-truefalsn u'#"
    bases = [ROW.encode(), '{"user":"é😀","n":null,"more":{"a":[1,{"b":"c"}]},"x":-0.0}'.encode(), b'{"user": 7, "x": 1e5, "is_on": false}']
    bases = [text.encode() for text in texts] or bases
    for _ in range(count):
        value = bytearray(random_.choice(bases))
        for _ in range(random_.randint(1, 4)):
            place = random_.randrange(len(value) + 1)
            more = bytes(random_.choices(alphabet, k=random_.randint(0, 3)))
            value[place : place + random_.randint(0, 3)] = more
        yield bytes(value)


def _in_a_field() -> Iterator[bytes]:
    for text in FIELDS:
        yield f'{{"user":{text}}}'.encode()
        for name in ("n", "big", "x", "f", "price", "d", "is_on", "at", "more"):
            yield f'{{"user":"u","{name}":{text}}}'.encode()


def _in_a_nested_field() -> Iterator[bytes]:
    for text in FIELDS:
        for place in (
            '{{"who": {}}}',
            '{{"who": {{"name": {}}}}}',
            '{{"who": {{"age": {}}}}}',
            '{{"who": {{"more": {}}}}}',
            '{{"who": {{"seen": {}}}}}',
        ):
            yield f'{{"user": "u", {place.format(text)[1:]}'.encode()
        for place in ('{{"tags": {}}}', '{{"tags": [{}]}}', '{{"tags": ["a", {}]}}', '{{"places": [{}]}}', '{{"places": [{{"y": [{}]}}]}}'):
            yield f'{{"user": "u", {place.format(text)[1:]}'.encode()
    yield b'{"user": "u", "who": {"age": 1, "age": 2}}'
    yield b'{"user": "u", "places": [{"x": 1, "x": 2}]}'


@pytest.mark.parametrize(
    ("schema", "values"),
    [
        pytest.param(SCHEMA, [*_in_a_field()], id="fields of all kinds"),
        pytest.param(SCHEMA, [*(text.encode() for text in AROUND), *BYTES], id="around the object"),
        pytest.param(SCHEMA, [*_changed(1, 4_000)], id="changed at random"),
        pytest.param(NESTED, [*_in_a_nested_field()], id="fields within fields"),
        pytest.param(NESTED, [*_changed(2, 2_000, NESTED_ROW)], id="nested and changed at random"),
    ],
)
def test_a_value_is_read_as_spark_reads_it(session: SparkSession, schema: str, values: list[bytes]) -> None:
    found, expected = _outcomes(session, schema, values), _outcomes(session, schema + READ_BY_SPARK, values)
    assert [(value[:200], ours, theirs) for value, ours, theirs in zip(values, found, expected, strict=True) if ours != theirs] == []
    # Both valid and invalid values are among them.
    assert {outcome.startswith("{") for outcome in found} == {True, False}


def test_a_value_of_the_common_form_is_not_left_to_spark(session: SparkSession) -> None:
    common = {
        ROW: {**json.loads(ROW), "price": Decimal("9.99"), "d": Decimal(7)},
        '{"user":"é😀 \\"q\\" \\u00e9","more":{"a":[1,{"b":"}"}]},"x":1}': {"user": 'é😀 "q" é', "x": 1.0},
        " {} ": {},
        '{"n": null}': {},
    }
    left = ['{"user": 7}', '{"n": "1"}', '{"n": 1.0}', '{"x": NaN}', '{"n": 1}{}', '{"n": 1, "n": 2}', "[]", "", "nonsense"]
    frame = session.createDataFrame([(text.encode(),) for text in [*common, *left]] + [(None,)], "value BINARY").coalesce(1)
    fields = StructType.fromDDL(SCHEMA.replace(" NOT NULL", "").replace("TIMESTAMP", "STRING"))
    assert isinstance(fields, StructType)
    column = plain_json.read(session, F.col("value"), fields)
    assert column is not None
    rows = [
        one[0] and {name: value for name, value in one[0].asDict().items() if value is not None} for one in frame.select(column).collect()
    ]
    assert rows == [*common.values(), *[None] * (len(left) + 1)]


def test_objects_and_arrays_within_a_value_are_not_left_to_spark(session: SparkSession) -> None:
    fields = StructType.fromDDL(NESTED.replace("TIMESTAMP", "STRING"))
    assert isinstance(fields, StructType)
    column = plain_json.read(session, F.col("value"), fields)
    assert column is not None
    ((row,),) = session.createDataFrame([(NESTED_ROW.encode(),)], "value BINARY").select(column).collect()
    expected = json.loads(NESTED_ROW)
    expected["places"] = [place and {"x": None, "y": None, **place} for place in expected["places"]]
    assert row.asDict(recursive=True) == expected


@pytest.mark.parametrize("kind", ["DATE", "ARRAY<DATE>", "STRUCT<a: SMALLINT>", "MAP<STRING, INT>", "TIMESTAMP", "BINARY", "VARIANT"])
def test_a_schema_of_other_types_is_left_to_spark(session: SparkSession, kind: str) -> None:
    fields = StructType.fromDDL(f"user STRING, other {kind}")
    assert isinstance(fields, StructType)
    assert plain_json.read(session, F.col("value"), fields) is None
