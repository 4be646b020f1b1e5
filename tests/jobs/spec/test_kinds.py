"""Parts of a spec that have one of several kinds, identified by their keys."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import TypeAdapter

from penstock.jobs.spec import FromKafka, FromSocket, LocalConnection, LocalRedis, Sink, Source, SpecFile, ToConsole, ToFiles, ToKafka, load
from penstock.jobs.spec.kinds import keys_of
from penstock.sizing.errors import PenstockError

SPEC = """\
apiVersion: penstock/v1
kind: StreamingJob
metadata: {name: clicks}
spec:
  app: app
  parallelism: 7
  executor: {slots: 13, memory: 16g}
  sources:
    a: SOURCE
  sinks:
    out: SINK
"""
KAFKA, FILES = "kafka: {topic: t}", "files: {path: out}"


def loaded(folder: Path, source: str = KAFKA, sink: str = FILES) -> SpecFile:
    path = folder / "spec.yaml"
    path.write_text(SPEC.replace("SOURCE", f"{{{source}}}").replace("SINK", f"{{{sink}}}"))
    return load(path)


def faults(folder: Path, source: str = KAFKA, sink: str = FILES) -> list[PenstockError]:
    with pytest.raises(PenstockError) as error:
        loaded(folder, source, sink)
    return list(error.value.errors)


def places(folder: Path, source: str = KAFKA, sink: str = FILES) -> list[tuple[str, int | None, str]]:
    return [(fault.code, fault.at.line if fault.at else None, fault.path) for fault in faults(folder, source, sink)]


def test_a_part_is_of_the_kind_whose_key_it_has(tmp_path: Path) -> None:
    spec = loaded(tmp_path, "socket: {connection: lines}, time: {kind: ingestion}", "console: {rows: 3}").job.spec
    source, sink = spec.sources["a"], spec.sinks["out"]
    assert isinstance(source, FromSocket) and isinstance(sink, ToConsole)
    assert (source.socket.connection, sink.console.rows) == ("lines", 3)
    assert source.time is not None and source.time.kind == "ingestion"
    assert (spec.kafka_sources, spec.file_sinks) == ({}, {})


def test_a_kind_whose_value_is_null_counts_as_left_out(tmp_path: Path) -> None:
    spec = loaded(tmp_path, f"files: null, {KAFKA}", f"{FILES}, kafka: null, redis: null").job.spec
    assert isinstance(spec.sources["a"], FromKafka)
    assert isinstance(spec.sinks["out"], ToFiles)


@pytest.mark.parametrize("sink", ["", "kafka: null", f"{FILES}, kafka: {{topic: o}}", f"{FILES}, {KAFKA}, console: {{}}"])
def test_none_or_several_kinds_are_one_fault_of_the_whole_part(tmp_path: Path, sink: str) -> None:
    (fault,) = faults(tmp_path, sink=sink)
    assert (fault.code, fault.at and fault.at.line, fault.path) == ("SPEC-006", 11, "spec.sinks.out")
    assert "files and kafka and postgres and redis and webhook and console and function" in fault.need


def test_the_fields_of_several_kinds_are_all_looked_at(tmp_path: Path) -> None:
    errors = places(tmp_path, source="kafka: {topc: t}, files: {path: /}, time: {feild: at}")
    assert errors == [
        ("SPEC-004", 9, "spec.sources.a.kafka.topc"),
        ("SPEC-006", 9, "spec.sources.a.files.path"),
        ("SPEC-004", 9, "spec.sources.a.time.feild"),
    ]


@pytest.mark.parametrize(
    ("source", "key"), [("kafk: {topic: t}", "kafk"), (f"{KAFKA}, tiem: {{}}", "tiem"), (f"{KAFKA}, FromKafka: {{}}", "FromKafka")]
)
def test_the_error_of_an_unknown_key_lists_all_the_kinds_and_their_shared_fields(tmp_path: Path, source: str, key: str) -> None:
    (fault,) = faults(tmp_path, source=source)
    assert (fault.code, fault.path) == ("SPEC-004", f"spec.sources.a.{key}")
    assert fault.need == "one of kafka, files, socket, time"


def test_the_faults_of_a_kind_have_the_places_of_the_document(tmp_path: Path) -> None:
    source = "kafka: {topic: t, partitions: 0, avro: {}}, time: {outOfOrderness: 10}"
    assert places(tmp_path, source) == [
        ("SPEC-006", 9, "spec.sources.a.kafka.partitions"),
        ("SPEC-005", 9, "spec.sources.a.kafka.avro.schemaFile"),
        ("SPEC-007", 9, "spec.sources.a.time.outOfOrderness"),
    ]


@pytest.mark.parametrize("sink", ["kafka: 5", "kafka: []", "kafka: text"])
def test_a_kind_is_a_mapping(tmp_path: Path, sink: str) -> None:
    assert places(tmp_path, sink=sink) == [("SPEC-006", 11, "spec.sinks.out.kafka")]


def test_a_model_is_accepted_unchanged() -> None:
    sink = ToKafka.model_validate({"kafka": {"topic": "t", "guarantee": "exactly-once"}})
    assert TypeAdapter(Sink).validate_python(sink) is sink and sink.exactly_once


def test_the_keys_are_in_the_order_of_the_kinds() -> None:
    assert keys_of(Source) == ["kafka", "files", "socket"]
    assert keys_of(LocalConnection) == ["postgres", "redis", "http", "socket"]
    local: LocalConnection = TypeAdapter(LocalConnection).validate_python({"redis": "fill:hashes"})
    assert isinstance(local, LocalRedis) and (local.kind, local.function) == ("redis", "fill:hashes")
