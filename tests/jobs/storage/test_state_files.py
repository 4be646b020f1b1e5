"""What Spark's own files say of state, in the form in which PySpark 4.3.0 writes them."""

from __future__ import annotations

import struct

import pytest

from penstock.jobs.storage.offset_log import OffsetLog, topics
from penstock.jobs.storage.state_files import OperatorMetadata, StoreInfo, metadata_file, schema_file, schemas, versions

KEY = '{"type":"struct","fields":[{"name":"user","type":"string","nullable":true,"metadata":{}}]}'
VALUE = (
    '{"type":"struct","fields":[{"name":"n","type":"long","nullable":true,"metadata":{}},{"name":"amount","type":"decimal(10,2)",'
    '"nullable":true,"metadata":{}},{"name":"seen","type":{"type":"map","keyType":"string","valueType":{"type":"array","elementType":'
    '"integer","containsNull":true},"valueContainsNull":true},"nullable":true,"metadata":{}}]}'
)
COLUMNS = "n BIGINT, amount DECIMAL(10,2), seen MAP<STRING, ARRAY<INT>>"


def _text(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode()


def _chunks(*texts: str) -> bytes:
    return struct.pack(">i", len(texts)) + b"".join(map(_text, texts))


def test_a_schema_is_read_also_in_chunks() -> None:
    (schema,) = schemas(_text("v2") + _chunks(KEY[:20], KEY[20:]) + _chunks(VALUE))
    assert (schema.name, schema.key, schema.value) == ("", "user STRING", COLUMNS)


def test_column_families_are_read_by_name() -> None:
    number = struct.pack(">h", 0)
    family = (
        number + _chunks(KEY) + number + _chunks(VALUE) + _chunks('{"keyStateEncoderType":"NoPrefixKeyStateEncoderSpec"}') + _chunks("{}")
    )
    found = schemas(_text("v3") + struct.pack(">i", 2) + _text("seen") + family + _text("timers") + family)
    assert [(one.name, one.key, one.value) for one in found] == [(name, "user STRING", COLUMNS) for name in ("seen", "timers")]


WHOLE = _text("v2") + _chunks(KEY) + _chunks(VALUE)


@pytest.mark.parametrize(
    "content", [WHOLE[:cut] for cut in range(0, len(WHOLE), 7)] + [_text("v9") + WHOLE, b"\xff" * 40, _text("v2") + _chunks("{}")]
)
def test_a_damaged_schema_is_refused_as_such(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        schemas(content)


def test_versions_are_those_of_every_provider_and_store() -> None:
    names = [
        "state/0/0/7_0b5f0caa-49ea-46c9-b52b-5a464b13fa84.changelog",
        "state/0/0/8_0b5f0caa-49ea-46c9-b52b-5a464b13fa84.zip",
        "state/0/0/8_0b5f0caa-49ea-46c9-b52b-5a464b13fa84.zip.crc",
        "state/0/0/SSTs/000008-1f255428-8233-46bf-940a-318e1d669735.sst",
        "state/0/12/left-keyToNumValues/7.delta",
        "state/0/12/left-keyToNumValues/10.snapshot",
        "state/0/_metadata/v2/0",
    ]
    assert versions(names) == {(0, "default"): {0: {7, 8}}, (0, "left-keyToNumValues"): {12: {7, 10}}}


def test_the_metadata_of_a_micro_batch_are_the_last_before_it() -> None:
    names = ["state/3/_metadata/v2/0", "state/3/_metadata/v2/40", "state/31/_metadata/v2/9"]
    found = [metadata_file(names, 3, batch) for batch in (-1, 0, 39, 40, 400)]
    assert found == [f"state/3/_metadata/v2/{number}" for number in (0, 0, 0, 40, 40)]
    assert metadata_file(["state/3/_metadata/metadata"], 3, 7) == "state/3/_metadata/metadata"
    assert metadata_file(names, 4, 7) is None


def test_a_schema_is_found_in_a_copied_checkpoint() -> None:
    copied = StoreInfo(
        store_name="default", num_partitions=2, state_schema_file_paths=("s3a://old/job/state/0/_stateSchema/default/0_a", "s3a://old/40_b")
    )
    assert schema_file(0, copied) == "state/0/_stateSchema/default/40_b"
    assert (
        schema_file(1, StoreInfo(store_name="right-keyToNumValues", num_partitions=2)) == "state/1/0/right-keyToNumValues/_metadata/schema"
    )


@pytest.mark.parametrize("text", ["", "v1", "v3\n{}", "v2\n{}", 'v1\n{"operatorInfo":{"operatorId":0}}'])
def test_damaged_metadata_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        OperatorMetadata.of(text)


def test_an_offset_log_has_the_offsets_of_each_source() -> None:
    log = OffsetLog.of('v1\n{"batchWatermarkMs":0,"batchTimestampMs":7,"conf":{}}\n{"clicks":{"0":2,"10":3}}\n-\n{"logOffset":4}')
    assert (log.batch_timestamp_ms, len(log.sources)) == (7, 3)
    assert [topics(offset) for offset in log.sources] == [{"clicks": {"0": 2, "10": 3}}, {}, {}]
    for damaged in ("", "v1", "v1\n{}", "v2\n{}", "v1\nnothing"):
        with pytest.raises(ValueError, match=r"."):
            OffsetLog.of(damaged)
