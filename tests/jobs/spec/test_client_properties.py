"""Kafka client properties of sources and sinks: those that are not Penstock's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka import Producer

from penstock.jobs.spec import SpecFile, load
from penstock.jobs.spec.client_properties import INSTEAD_OF_SINKS, INSTEAD_OF_SOURCES, OF_TRANSACTIONS, OneOf, Whole, as_text
from penstock.sizing.errors import PenstockError


def _load(folder: Path, source: dict[str, Any], sink: dict[str, Any], **of_sink: Any) -> SpecFile:
    spec = {
        "app": "apps.a",
        "parallelism": 1,
        "executor": {"memory": "1g"},
        "sources": {"in": {"kafka": {"topic": "a", "properties": source}}},
        "sinks": {"out": {"kafka": {"topic": "b", "properties": sink, **of_sink}}},
    }
    document = {"apiVersion": "penstock/v1", "kind": "StreamingJob", "metadata": {"name": "a"}, "spec": spec}
    (folder / "job.yaml").write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    return load(folder / "job.yaml")


def _faults(folder: Path, *properties: dict[str, Any], **of_sink: Any) -> list[PenstockError]:
    with pytest.raises(PenstockError) as raised:
        _load(folder, *properties, **of_sink)
    return list(raised.value.errors)


def test_properties_of_the_clients_are_the_teams(tmp_path: Path) -> None:
    read = {"fetch.max.bytes": 1048576, "max.poll.records": "2000", "client.rack": "use1-az1", "check.crcs": False}
    written = {"compression.type": "zstd", "linger.ms": 50, "batch.size": 131072}
    job = _load(tmp_path, read, written).job.spec
    assert as_text(job.kafka_sources["in"].properties) == {
        "fetch.max.bytes": "1048576",
        "max.poll.records": "2000",
        "client.rack": "use1-az1",
        "check.crcs": "false",
    }
    assert as_text(job.kafka_sinks["out"].properties) == {"compression.type": "zstd", "linger.ms": "50", "batch.size": "131072"}


@pytest.mark.parametrize("exactly_once", [False, True])
def test_what_penstock_or_spark_sets_is_refused_with_what_to_use_instead(tmp_path: Path, exactly_once: bool) -> None:
    def named(instead: Any) -> dict[str, str]:
        return {f"{name}any" if name.endswith(".") else name: "value" for name in instead}

    guarantee = "exactly-once" if exactly_once else "at-least-once"
    read, written = named(INSTEAD_OF_SOURCES), named(INSTEAD_OF_SINKS)
    faults = _faults(tmp_path, read, written, guarantee=guarantee)
    assert {fault.code for fault in faults} == {"SPEC-015"}
    assert all(fault.at is not None and fault.at.line for fault in faults)
    fixes = {fault.path: fault.fix for fault in faults}
    assert len(fixes) == len(read) + len(written)
    assert fixes["spec.sources.in.kafka.properties.group.id"] == "set groupId"
    assert fixes["spec.sources.in.kafka.properties.auto.offset.reset"] == "set startingOffsets"
    assert fixes["spec.sources.in.kafka.properties.security.any"].endswith("spec.kafka.security")
    assert fixes["spec.sinks.out.kafka.properties.transactional.id"] == "set guarantee: exactly-once"


def test_a_password_is_not_repeated(tmp_path: Path) -> None:
    (fault,) = _faults(tmp_path, {"sasl.jaas.config": "password=hunter2"}, {})
    assert "hunter2" not in fault.render()


@pytest.mark.parametrize(
    ("source", "sink", "path", "fix"),
    [
        ({"fetch.max.byte": 1}, {}, "spec.sources.in.kafka.properties.fetch.max.byte", "did you mean fetch.max.bytes?"),
        ({"linger.ms": 1}, {}, "spec.sources.in.kafka.properties.linger.ms", "correct or remove it"),
        ({}, {"fetch.max.bytes": 1}, "spec.sinks.out.kafka.properties.fetch.max.bytes", "correct or remove it"),
    ],
)
def test_a_name_that_the_client_does_not_know_is_refused(tmp_path: Path, source: Any, sink: Any, path: str, fix: str) -> None:
    (fault,) = _faults(tmp_path, source, sink)
    assert (fault.code, fault.path, fault.fix) == ("SPEC-015", path, fix)


@pytest.mark.parametrize(
    ("source", "sink", "need"),
    [
        ({"fetch.max.bytes": "1m"}, {}, "a whole number from 0 to 2147483647"),
        ({"fetch.max.bytes": 1.5}, {}, "a whole number from 0 to 2147483647"),
        ({"fetch.max.bytes": 2**31}, {}, "a whole number from 0 to 2147483647"),
        ({"max.poll.records": 0}, {}, "a whole number from 1 to 2147483647"),
        ({"check.crcs": "yes"}, {}, "one of true, false"),
        ({}, {"compression.type": "lzma"}, "one of none, gzip, snappy, lz4, zstd"),
        ({}, {"max.in.flight.requests.per.connection": 6}, "a whole number from 1 to 5"),
    ],
)
def test_a_value_is_of_its_type_and_range(tmp_path: Path, source: Any, sink: Any, need: str) -> None:
    (fault,) = _faults(tmp_path, source, sink)
    assert (fault.code, fault.need) == ("SPEC-006", need)


def test_an_exactly_once_sink_has_the_properties_of_its_own_client(tmp_path: Path) -> None:
    (fault,) = _faults(tmp_path, {}, {"buffer.memory": 1}, guarantee="exactly-once")
    assert (fault.code, fault.path) == ("SPEC-015", "spec.sinks.out.kafka.properties.buffer.memory")
    (limit,) = _faults(tmp_path, {}, {"delivery.timeout.ms": 1}, guarantee="exactly-once")
    assert limit.fix.startswith("set transactionTimeout")
    # Raises for a name that librdkafka does not know.
    Producer({"bootstrap.servers": "127.0.0.1:1", "log_level": 0, **{name: _some(kind) for name, kind in OF_TRANSACTIONS.items()}})


def _some(kind: object) -> str:
    if isinstance(kind, OneOf):
        return kind.names[0]
    # Within the ranges of both clients.
    return "5" if isinstance(kind, Whole) and kind.most == 5 else "10000" if isinstance(kind, Whole) else "text"
