"""Kafka client properties that a spec sets, at the consumers that read and in what the producers have written."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Mapping
from typing import Any

import pytest
from py4j.java_gateway import get_field
from pyspark.sql import SparkSession

from penstock.jobs.local.recording import Record
from penstock.jobs.sinks.errors import ClientPropertiesRefused
from penstock.jobs.spec import client_properties
from penstock.jobs.spec.client_properties import Kind, OneOf, Text, Whole
from penstock.scripts.local import kafka_topics
from penstock.scripts.local.kafka_broker import KafkaBroker
from tests.jobs.spark.group_offsets import committed
from tests.jobs.spark.running import Surroundings

# Source: Apache Kafka, "Message Format", attributes of a record batch: bits 0 to 2.
_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_ATTRIBUTES_AT = 21


def _row(name: str) -> dict[str, object]:
    return {"key": "k", "at": "2025-04-05T12:30:00Z", "name": name}


class _Beans:
    """The MBeans of a JVM. The class of its server is not open to others, so that its interface's methods are called by reflection."""

    def __init__(self, session: SparkSession) -> None:
        gateway: Any = session.sparkContext._gateway
        self._gateway, self._jvm = gateway, gateway.jvm
        self._server = self._jvm.java.lang.management.ManagementFactory.getPlatformMBeanServer()
        interface = self._jvm.java.lang.Class.forName("javax.management.MBeanServer")
        self._methods = {str(method.getName()): method for method in interface.getMethods()}

    def call(self, method: str, *arguments: Any) -> Any:
        """Calls a method that has one form."""
        given = self._gateway.new_array(self._jvm.java.lang.Object, len(arguments))
        for number, argument in enumerate(arguments):
            given[number] = argument
        return self._methods[method].invoke(self._server, given)

    def consumers(self, client: str) -> dict[str, Mapping[str, float]]:
        """Client id of each Java consumer that `client`, which may end with `*`, matches -> its metrics.

        Spark keeps consumers for its next micro-batch, and closes those of earlier tests' jobs at any time: between the list of
        all and the question for one's metrics, too. So `client` is of the test's own job.
        """
        pattern = self._jvm.javax.management.ObjectName(f"kafka.consumer:type=consumer-fetch-manager-metrics,client-id={client}")
        metrics = ("records-consumed-total", "records-per-request-avg")
        # A pattern of names is a query, too.
        names = self.call("queryNames", pattern, pattern)
        return {
            str(name.getKeyProperty("client-id")): {metric: float(self.call("getAttribute", name, metric)) for metric in metrics}
            for name in names
        }


def test_the_consumers_of_a_source_have_its_properties(surroundings: Surroundings) -> None:
    job = surroundings.job("tests.jobs.spark.apps.copy_rows", sources={"a": 1})
    client, properties = f"client-of-{job.name}", {"max.partition.fetch.bytes": 1, "max.poll.records": 2}
    job.edit(lambda spec: spec["sources"]["a"]["kafka"].update(properties={"client.id": client, **properties}))
    # Each in a batch of its own, of which a fetch that may have one byte brings one.
    for number in range(4):
        job.feed("a", _row(f"row {number}"))
    with job.running() as running:
        running.until_read({"a": [4]})
        consumers = _Beans(surroundings.session).consumers(client)
    assert consumers[client]["records-consumed-total"] == 4
    assert consumers[client]["records-per-request-avg"] <= 1
    assert len(job.rows()) == 4


def test_an_executor_keeps_its_consumers_when_it_reads_many_partitions(surroundings: Surroundings) -> None:
    """By default Spark keeps 64, and closes those that the next micro-batch needs first."""
    many = 70
    job = surroundings.job("tests.jobs.spark.apps.copy_rows", sources={"a": many})
    group = f"group-of-{job.name}"
    job.edit(lambda spec: spec["sources"]["a"]["kafka"].update(groupId=group))
    kafka_topics.create(surroundings.brokers, {f"{job.name}-out": 1})
    job.edit(lambda spec: spec["sinks"].update(out={"kafka": {"topic": f"{job.name}-out"}}))
    records = [Record(json.dumps(_row(f"row {number}")).encode(), partition=number) for number in range(many)]
    surroundings.feeder.feed(job.topics["a"], many, records, lambda _: None)
    with job.running() as running:
        running.until_read({"a": [1] * many})
        kept = _Beans(surroundings.session).consumers(f"consumer-{group}-*")
    assert len(kept) == many


def test_a_source_reads_and_commits_with_its_own_group(surroundings: Surroundings) -> None:
    job = surroundings.job("tests.jobs.spark.apps.copy_rows", sources={"a": 1})
    group, topic = f"group-of-{job.name}", job.topics["a"]
    kafka = {"groupId": group, "commitOffsets": True, "startingOffsets": "committed-or-earliest"}
    job.edit(lambda spec: spec["sources"]["a"]["kafka"].update(kafka))
    job.feed("a", _row("one"), _row("two"))
    with job.running() as running:
        running.until_read({"a": [2]})
        # By default a Java client's id is made of its group and a number.
        clients = _Beans(surroundings.session).consumers(f"consumer-{group}-*")
        assert any(re.fullmatch(rf"consumer-{group}-[0-9]+", client) for client in clients), clients
    assert committed(surroundings.brokers, group, [(topic, 0)]) == [2]
    assert committed(surroundings.brokers, f"penstock.{job.name}", [(topic, 0)])[0] < 0
    # A new checkpoint begins where this group is.
    job.edit(lambda spec: spec.update(upgradeMode="stateless", restartNonce=1))
    job.feed("a", _row("three"))
    with job.running() as running:
        assert running.reading["offsets"] == {"a": {topic: {"0": 2}}}
        running.until_read({"a": [3]})
    assert [row["name"] for row in job.rows()] == ["one", "three", "two"]
    assert committed(surroundings.brokers, group, [(topic, 0)]) == [3]


@pytest.mark.parametrize("guarantee", ["at-least-once", "exactly-once"])
@pytest.mark.parametrize(("properties", "codec"), [({}, "lz4"), ({"compression.type": "zstd", "linger.ms": 1}, "zstd")])
def test_the_producers_of_a_sink_compress_by_lz4_unless_its_properties_say_otherwise(
    surroundings: Surroundings, kafka: KafkaBroker, guarantee: str, properties: dict[str, object], codec: str
) -> None:
    job = surroundings.job("tests.jobs.spark.apps.copy_rows", sources={"a": 1})
    topic = f"{job.name}-out"
    kafka_topics.create(surroundings.brokers, {topic: 1})
    to_topic = {"kafka": {"topic": topic, "guarantee": guarantee, "properties": properties}}
    job.edit(lambda spec: spec["sinks"].update(out=to_topic))
    job.feed("a", _row("one" * 200))
    with job.running() as running:
        running.until_read({"a": [1]})
    assert _first_codec(kafka, topic) == codec


def test_values_that_the_client_of_an_exactly_once_sink_does_not_take_are_refused_before_the_query_starts(
    surroundings: Surroundings,
) -> None:
    job = surroundings.job("tests.jobs.spark.apps.copy_rows", sources={"a": 1})
    kafka_topics.create(surroundings.brokers, {f"{job.name}-out": 1})
    # More than librdkafka allows, and not more than Java's client.
    to_topic = {"kafka": {"topic": f"{job.name}-out", "guarantee": "exactly-once", "properties": {"linger.ms": 10_000_000}}}
    job.edit(lambda spec: spec["sinks"].update(out=to_topic))
    with pytest.raises(ClientPropertiesRefused) as refused, job.running():
        pass
    assert "outside allowed range 0..900000" in refused.value.given and refused.value.fix == "correct spec.sinks.out.kafka.properties"


def _first_codec(kafka: KafkaBroker, topic: str) -> str:
    """Compression of the first record batch in the broker's own files."""
    (segment,) = (kafka.log.parent / "data" / "data" / f"{topic}-0").glob("*.log")
    (attributes,) = struct.unpack_from(">h", segment.read_bytes(), _ATTRIBUTES_AT)
    return _CODECS[attributes & 7]


@pytest.mark.parametrize(
    ("client", "known", "instead"),
    [
        ("consumer.ConsumerConfig", client_properties.OF_SOURCES, client_properties.INSTEAD_OF_SOURCES),
        ("producer.ProducerConfig", client_properties.OF_SINKS, client_properties.INSTEAD_OF_SINKS),
    ],
)
def test_the_properties_are_those_of_kafkas_client(
    session: SparkSession, client: str, known: Mapping[str, Kind], instead: Mapping[str, str]
) -> None:
    """A property that a later client has, or has no longer, is found here."""
    jvm: Any = session.sparkContext._jvm
    package, _, name = client.partition(".")
    definition = getattr(getattr(jvm.org.apache.kafka.clients, package), name).configDef()
    keys = {str(key): definition.configKeys().get(key) for key in definition.configKeys()}
    named = {name for name in keys if not name.startswith(("internal.", "security.", "sasl.", "ssl."))}
    assert known.keys() | {name for name in instead if not name.endswith(".")} == named
    for name, kind in known.items():
        assert _agrees(kind, *(str(get_field(keys[name], field)) for field in ("type", "validator"))), name


def _agrees(kind: Kind, type_: str, validator: str) -> bool:
    match kind:
        case Whole():
            most = {"INT": 2**31 - 1, "LONG": 2**63 - 1}[type_]
            if validator in ("None", f"[{kind.least},...]"):
                # Of an idempotent producer there is a limit beside it.
                return kind.most in (most, 5)
            return validator.startswith(f"[{kind.least},...,{kind.most}]")
        case OneOf() if kind == client_properties.TRUTH:
            return type_ == "BOOLEAN"
        case OneOf():
            names = validator.removeprefix("(case insensitive) ").strip("[]").split(", ")
            return {name.lower() for name in names} == {name.lower() for name in kind.names}
        case Text():
            return type_ in ("STRING", "LIST", "CLASS") and not validator.startswith(("[", "(case"))
