"""Topic settings that the jobs of an environment request together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from penstock.jobs.document import Path_
from penstock.jobs.spec import KafkaSink, KafkaSource, SpecFile, TopicSettings
from penstock.jobs.spec.errors import TopicsDisagree
from penstock.sizing.errors import PenstockError, raise_all

CLEANUP_POLICY, RETENTION = "cleanup.policy", "retention.ms"
# A broker accepts records of 1 MiB by default (message.max.bytes). A record of that size becomes larger in quarantine: its value is text in
# JSON, where a character may take six bytes. The topic's max.message.bytes must allow it.
MAX_RECORD_BYTES = 8 * 1024 * 1024
# Source: Apache Kafka, "Topic configs": -1 is no limit.
_FOREVER = "-1"
_POLICIES: dict[Literal["delete", "compact", "compact-delete"], str] = {
    "delete": "delete",
    "compact": "compact",
    "compact-delete": "compact,delete",
}


@dataclass(frozen=True)
class AskedTopic:
    """Settings that specs request for a topic; None or missing if they do not.

    Args:
        name: name of the topic.
        partitions: requested number; else derived from the plans.
        replication: replicas of each partition.
        config: settings by Kafka's names, with values in Kafka's format.
        written: whether a job writes to it.
    """

    name: str
    partitions: int | None = None
    replication: int | None = None
    config: dict[str, str] = field(default_factory=dict)
    written: bool = False


def asked_topics(specs: Sequence[SpecFile]) -> dict[str, AskedTopic]:
    """Topic -> settings that all jobs request together, in the order of the specs.

    Args:
        specs: specs of the jobs of one environment.

    Raises:
        PenstockError: SPEC-013 for each setting that two jobs disagree on; several are raised as `Faults`.
    """
    said: dict[str, dict[str, _Said]] = {}
    faults: list[PenstockError] = []
    written: set[str] = set()
    for spec in specs:
        written |= set(spec.job.written_topics())
        for topic in spec.job.topics():
            known = said.setdefault(topic, {})
            for one in _said(spec, topic):
                first = known.setdefault(one.what, one)
                if first.value != one.value:
                    faults.append(_disagree(first, one))
    raise_all(faults)
    return {topic: _asked(topic, known, written=topic in written) for topic, known in said.items()}


def config_value(value: str | int | float | bool) -> str:
    """A setting's value in Kafka's format."""
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass(frozen=True)
class _Said:
    """One setting that a spec requests for a topic."""

    what: str
    value: str
    spec: SpecFile
    path: Path_


def _said(spec: SpecFile, topic: str) -> Iterator[_Said]:
    settings = spec.job.spec.topics.get(topic, TopicSettings())
    at: Path_ = ("spec", "topics", topic)
    yield from _partitions(spec, topic, settings)
    if settings.replication is not None:
        yield _Said("replication", str(settings.replication), spec, (*at, "replication"))
    if settings.retention is not None:
        yield _Said(RETENTION, _FOREVER if settings.retention == "forever" else str(settings.retention), spec, (*at, "retention"))
    if settings.cleanup_policy is not None:
        yield _Said(CLEANUP_POLICY, _POLICIES[settings.cleanup_policy], spec, (*at, "cleanupPolicy"))
    for name, value in settings.config.items():
        yield _Said(name, config_value(value), spec, (*at, "config", name))


def _partitions(spec: SpecFile, topic: str, settings: TopicSettings) -> Iterator[_Said]:
    if settings.partitions is not None:
        yield _Said("partitions", str(settings.partitions), spec, ("spec", "topics", topic, "partitions"))
    parts: Mapping[str, Mapping[str, KafkaSource | KafkaSink]] = {
        "sources": spec.job.spec.kafka_sources,
        "sinks": spec.job.spec.kafka_sinks,
    }
    for kind, named in parts.items():
        for name, kafka in named.items():
            # A default is not a request.
            if kafka.topic == topic and kafka.partitions is not None and "partitions" in kafka.model_fields_set:
                yield _Said("partitions", str(kafka.partitions), spec, ("spec", kind, name, "kafka", "partitions"))


def _disagree(first: _Said, other: _Said) -> PenstockError:
    place = first.spec.document.place(first.path)
    fault = TopicsDisagree(need=f"{first.value}, as {first.spec.job.metadata.name} sets it in {place}", fix="use the same value in both")
    return other.spec.document.locate(fault, other.path)


def _asked(topic: str, known: dict[str, _Said], *, written: bool) -> AskedTopic:
    values = {what: said.value for what, said in known.items()}
    partitions, replication = values.pop("partitions", None), values.pop("replication", None)
    return AskedTopic(topic, _number(partitions), _number(replication), values, written)


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)
