"""Fields of a source, and the files that it names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from penstock.jobs.spec import FilesSource, KafkaSource, load
from penstock.jobs.spec.avro_schemas import avro_schemas
from penstock.jobs.spec.errors import AvroSchemaUnread
from penstock.jobs.spec.times import epoch_ms


def _kafka(**fields: Any) -> KafkaSource:
    return KafkaSource.model_validate(fields)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "exactly one of topic and topics and pattern"),
        ({"topic": "a", "pattern": "a.*"}, "exactly one of"),
        ({"pattern": "a("}, "a regular expression"),
        ({"topic": "a", "startingOffsets": "yesterday"}, "one of committed-or-latest"),
        ({"topic": "a", "startingOffsets": "2026-11-21T12:00:00"}, "or a time with its offset from UTC as 2026-11-21"),
        ({"topic": "a", "startingOffsets": -1}, "or epoch milliseconds"),
        ({"topic": "a", "startingOffsets": True}, "or epoch milliseconds"),
        ({"topic": "a", "startingOffsets": 1e30}, "or epoch milliseconds"),
        ({"topic": "a", "startingOffsets": "earliest", "startingGroup": "g"}, "startingGroup only with startingOffsets: committed"),
        ({"topic": "a", "startingOffsets": "committed", "startingGroup": "*"}, "String should match pattern"),
        ({"topic": "a", "value": "avro"}, "avro: {schemaFile: ...} with value: avro"),
        ({"topic": "a", "avro": {"schemaFile": "a.avsc"}}, "and only with it"),
        ({"topic": "a", "value": "avro", "avro": {"schemaFile": "folder/a.avsc"}}, "String should match pattern"),
        ({"topic": "a", "value": "avro", "avro": {"schemaFile": "a.avsc", "schemaId": 1}}, "schemaId with framing: confluent"),
        ({"topic": "a", "csv": {"separator": ";"}}, "csv only with value: csv"),
        ({"topic": "a", "tombstones": "delete"}, "key: {fields: [...]} with tombstones: delete"),
        ({"topic": "a", "key": {"fields": ["id"]}}, "and only with it"),
        ({"topic": "a", "tombstones": "delete", "key": {"fields": ["a", "b"]}}, "one field with format: text"),
        ({"topic": "a", "groupId": "team*"}, "String should match pattern"),
        ({"topic": "a", "groupId": "team", "groupIdPrefix": "team.spark"}, "groupId or groupIdPrefix"),
        ({"topic": "a", "groupIdPrefix": "my group"}, "String should match pattern"),
    ],
)
def test_an_invalid_kafka_source_is_rejected(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError) as refused:
        _kafka(**fields)
    assert message in str(refused.value)


def test_a_kafka_source_has_all_its_fields() -> None:
    source = _kafka(
        topics=["a", "b"],
        startingOffsets="2026-11-21T12:00:00+05:30",
        value="avro",
        avro={"schemaFile": "a.avsc", "framing": "confluent", "schemaId": 3},
        tombstones="delete",
        key={"fields": ["a", "b"], "format": "json"},
        commitOffsets=True,
        groupIdPrefix="team.spark",
        minPartitions=8,
        maxOffsetsPerTrigger=1000,
    )
    assert source.named == ("a", "b") and source.key is not None and source.key.format == "json"


def test_keys_of_change_events_are_objects() -> None:
    key = {"fields": ["id"], "format": "json"}
    assert _kafka(topic="a", value="debezium", tombstones="delete", key=key).key is not None
    with pytest.raises(ValidationError, match=r"key: .format: json"):
        _kafka(topic="a", value="debezium", tombstones="delete", key={"fields": ["id"]})


@pytest.mark.parametrize("text", ["2026-11-21T12:00:00+05:30", 1_795_242_600_000, "1795242600000"])
def test_a_start_is_a_time_in_one_of_two_forms(text: str | int) -> None:
    assert epoch_ms(_kafka(topic="a", startingOffsets=text).starting_offsets) == 1_795_242_600_000


def test_csv_settings_are_for_csv_files() -> None:
    with pytest.raises(ValidationError, match="csv only with format: csv"):
        FilesSource.model_validate({"path": "in", "csv": {"separator": ";"}})


def _spec(folder: Path) -> Path:
    kafka = {"topic": "a", "value": "avro", "avro": {"schemaFile": "a.avsc"}}
    spec = {"app": "apps.a", "parallelism": 1, "executor": {"memory": "2g"}, "sources": {"a": {"kafka": kafka}}}
    document = {"apiVersion": "penstock/v1", "kind": "StreamingJob", "metadata": {"name": "a"}, "spec": spec}
    (folder / "a.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
    return folder / "a.yaml"


def test_avro_schemas_are_read_from_beside_the_spec(tmp_path: Path) -> None:
    spec = load(_spec(tmp_path))
    with pytest.raises(AvroSchemaUnread) as missing:
        avro_schemas(spec)
    assert "a.yaml" in missing.value.render() and "SPEC-030" in missing.value.render()
    (tmp_path / "a.avsc").write_text("{}", encoding="utf-8")
    assert avro_schemas(spec) == {"a.avsc": "{}"}
