"""Kafka client properties of a source or a sink: those that are neither Penstock's nor Spark's own, with their types and ranges.

They are judged before anything runs: a client ignores a name that it does not know, and says so in its log at best.

Source: the ``ConfigDef`` of ConsumerConfig and ProducerConfig in kafka-clients 3.9.2; librdkafka, CONFIGURATION.md, for exactly-once
sinks; Spark 4.2, Structured Streaming + Kafka Integration Guide, "Kafka Specific Configurations", for those that Spark refuses.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from penstock.jobs.errors import BadValue
from penstock.jobs.spec.errors import ClientPropertyRefused
from penstock.sizing.errors import PenstockError

PropertyValue = str | int | float | bool
Properties = dict[Annotated[str, Field(min_length=1, max_length=200)], PropertyValue]


@dataclass(frozen=True)
class Whole:
    """A whole number.

    Args:
        least: smallest value.
        most: greatest value.
    """

    least: int
    most: int

    @property
    def need(self) -> str:
        """What a value must be."""
        return f"a whole number from {self.least} to {self.most}"

    def has(self, text: str) -> bool:
        """Whether a value is one."""
        return re.fullmatch(r"-?[0-9]{1,19}", text) is not None and self.least <= int(text) <= self.most


@dataclass(frozen=True)
class OneOf:
    """A name of several, in any case if the client does not mind.

    Args:
        names: the names.
        any_case: whether upper and lower case are the same.
    """

    names: tuple[str, ...]
    any_case: bool = False

    @property
    def need(self) -> str:
        """What a value must be."""
        return f"one of {', '.join(self.names)}"

    def has(self, text: str) -> bool:
        """Whether a value is one."""
        return (text.lower() if self.any_case else text) in self.names


@dataclass(frozen=True)
class Text:
    """Any text."""

    need = "text"

    def has(self, text: str) -> bool:
        """Whether a value is one: any is."""
        return True


Kind = Whole | OneOf | Text
_LEAST_LONG = -(2**63)


def _int(least: int = 0) -> Whole:
    return Whole(least, 2**31 - 1)


def _long(least: int = 0) -> Whole:
    return Whole(least, 2**63 - 1)


TRUTH = OneOf(("true", "false"), any_case=True)

_CLIENT: Mapping[str, Kind] = {
    "auto.include.jmx.reporter": TRUTH,
    "client.dns.lookup": OneOf(("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only")),
    "client.id": Text(),
    "connections.max.idle.ms": _long(_LEAST_LONG),
    "enable.metrics.push": TRUTH,
    "metadata.max.age.ms": _long(),
    "metadata.recovery.strategy": OneOf(("none", "rebootstrap"), any_case=True),
    "metric.reporters": Text(),
    "metrics.num.samples": _int(1),
    "metrics.recording.level": OneOf(("INFO", "DEBUG", "TRACE")),
    "metrics.sample.window.ms": _long(),
    "receive.buffer.bytes": _int(-1),
    "reconnect.backoff.max.ms": _long(),
    "reconnect.backoff.ms": _long(),
    "request.timeout.ms": _int(),
    "retry.backoff.max.ms": _long(),
    "retry.backoff.ms": _long(),
    "send.buffer.bytes": _int(-1),
    "socket.connection.setup.timeout.max.ms": _long(_LEAST_LONG),
    "socket.connection.setup.timeout.ms": _long(_LEAST_LONG),
}
OF_SOURCES: Mapping[str, Kind] = {
    **_CLIENT,
    "allow.auto.create.topics": TRUTH,
    "check.crcs": TRUTH,
    "client.rack": Text(),
    "default.api.timeout.ms": _int(),
    "fetch.max.bytes": _int(),
    "fetch.max.wait.ms": _int(),
    "fetch.min.bytes": _int(),
    "max.partition.fetch.bytes": _int(),
    "max.poll.records": _int(1),
}
OF_SINKS: Mapping[str, Kind] = {
    **_CLIENT,
    "batch.size": _int(),
    "buffer.memory": _long(),
    "compression.gzip.level": Whole(1, 9),
    "compression.lz4.level": Whole(1, 17),
    "compression.type": OneOf(("none", "gzip", "snappy", "lz4", "zstd")),
    "compression.zstd.level": Whole(-131_072, 22),
    "delivery.timeout.ms": _int(),
    "linger.ms": _long(),
    "max.block.ms": _long(),
    # An idempotent producer has at most 5, and with more Kafka's client silently is none.
    "max.in.flight.requests.per.connection": Whole(1, 5),
    "metadata.max.idle.ms": _long(5000),
    "partitioner.adaptive.partitioning.enable": TRUTH,
    "partitioner.availability.timeout.ms": _long(),
    "partitioner.class": Text(),
    "partitioner.ignore.keys": TRUTH,
}
# What the client of exactly-once sinks has under Kafka's names and with Kafka's meaning.
_SHARED = (
    *("batch.size", "client.dns.lookup", "client.id", "compression.type", "connections.max.idle.ms", "enable.metrics.push", "linger.ms"),
    *("max.in.flight.requests.per.connection", "metadata.max.age.ms", "metadata.recovery.strategy", "reconnect.backoff.max.ms"),
    *("reconnect.backoff.ms", "request.timeout.ms", "retry.backoff.max.ms", "retry.backoff.ms", "socket.connection.setup.timeout.ms"),
)
OF_TRANSACTIONS: Mapping[str, Kind] = {name: OF_SINKS[name] for name in _SHARED}

_NO_MEMBER = "Spark gives its tasks their partitions, so that no consumer is a member of a group: remove it"
_REFUSED_BY_SPARK = "Spark refuses it: remove it"
_SECURITY = "the environment says how clients authenticate: spec.kafka.security"
# Prefix or name -> what to do instead.
_INSTEAD: Mapping[str, str] = {
    "bootstrap.servers": "the environment has the brokers: spec.kafka, or --brokers",
    "interceptor.classes": _REFUSED_BY_SPARK,
    "security.": _SECURITY,
    "sasl.": _SECURITY,
    "ssl.": _SECURITY,
}
INSTEAD_OF_SOURCES: Mapping[str, str] = {
    **_INSTEAD,
    "group.id": "set groupId",
    "auto.offset.reset": "set startingOffsets",
    "isolation.level": "set isolationLevel",
    "enable.auto.commit": "set commitOffsets",
    "auto.commit.interval.ms": "set commitOffsets, which commits after each micro-batch",
    "key.deserializer": "set key",
    "value.deserializer": "set value",
    "exclude.internal.topics": "set pattern, which never matches Kafka's own topics",
    **dict.fromkeys(
        (
            "group.instance.id",
            "group.protocol",
            "group.remote.assignor",
            "heartbeat.interval.ms",
            "max.poll.interval.ms",
            "partition.assignment.strategy",
            "session.timeout.ms",
        ),
        _NO_MEMBER,
    ),
}
_ALL_REPLICAS = "records are always acknowledged by all replicas and written idempotently: remove it"
INSTEAD_OF_SINKS: Mapping[str, str] = {
    **_INSTEAD,
    "acks": _ALL_REPLICAS,
    "enable.idempotence": _ALL_REPLICAS,
    "retries": "set delivery.timeout.ms, which limits the retries; with guarantee: exactly-once set transactionTimeout",
    "transactional.id": "set guarantee: exactly-once",
    "transaction.timeout.ms": "set transactionTimeout",
    "key.serializer": "set key",
    "value.serializer": "remove it: values are written as JSON",
    "max.request.size": "set max.message.bytes in the config of the topic, below spec.topics",
}
# Of exactly-once sinks alone.
INSTEAD_OF_TRANSACTIONS: Mapping[str, str] = {**INSTEAD_OF_SINKS, "delivery.timeout.ms": "set transactionTimeout, which limits it"}


def as_text(properties: Mapping[str, PropertyValue]) -> dict[str, str]:
    """Properties as a client takes them: name -> text."""
    return {name: _text(value) for name, value in properties.items()}


def faults_of_source(properties: Mapping[str, PropertyValue]) -> Iterator[tuple[str, PenstockError]]:
    """Name and fault of each property that a source may not have: SPEC-015, and SPEC-006 for its value."""
    return _faults(properties, OF_SOURCES, INSTEAD_OF_SOURCES, "a source")


def faults_of_sink(properties: Mapping[str, PropertyValue], *, exactly_once: bool) -> Iterator[tuple[str, PenstockError]]:
    """Name and fault of each property that a sink may not have: SPEC-015, and SPEC-006 for its value.

    Args:
        properties: name -> value.
        exactly_once: whether the sink writes transactions, by another client than Spark's.
    """
    if exactly_once:
        return _faults(properties, OF_TRANSACTIONS, INSTEAD_OF_TRANSACTIONS, "an exactly-once sink")
    return _faults(properties, OF_SINKS, INSTEAD_OF_SINKS, "a sink")


def _faults(
    properties: Mapping[str, PropertyValue], known: Mapping[str, Kind], instead: Mapping[str, str], whose: str
) -> Iterator[tuple[str, PenstockError]]:
    for name, value in properties.items():
        if name not in known:
            yield name, _refused(name, known, instead, whose)
        elif not known[name].has(_text(value)):
            yield name, BadValue(need=known[name].need, fix=f"correct or remove {name}")


def _refused(name: str, known: Mapping[str, Kind], instead: Mapping[str, str], whose: str) -> ClientPropertyRefused:
    way_out = next((fix for start, fix in instead.items() if name == start or (start.endswith(".") and name.startswith(start))), None)
    if way_out is not None:
        # The value of one that is about security may be a password.
        given = "a value that is not shown" if way_out == _SECURITY else ""
        return ClientPropertyRefused(given=given, need="a Kafka client property that neither Penstock nor Spark sets", fix=way_out)
    close = difflib.get_close_matches(name, known, n=1)
    fix = f"did you mean {close[0]}?" if close else "correct or remove it"
    return ClientPropertyRefused(need=f"a Kafka client property of {whose}: {', '.join(sorted(known))}", fix=fix)


def _text(value: PropertyValue) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
