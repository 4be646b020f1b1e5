"""Difference between existing and wanted topics. Pure: no brokers, no files.

Topics are created and extended. They never shrink, are never deleted, and lose records only with explicit consent.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from penstock.jobs.spec.requested_topics import CLEANUP_POLICY

Action = Literal["create", "grow", "configure"]
# Settings whose reduction deletes records that were retained before. Source: Apache Kafka, "Topic configs"; -1 is unlimited.
_KEEPING = ("retention.ms", "retention.bytes", "delete.retention.ms", "max.compaction.lag.ms")
_UNLIMITED = -1.0


@dataclass(frozen=True)
class WantedTopic:
    """A topic as the specs, the plans and the environment require it.

    Args:
        name: name of the topic.
        partitions: minimum number of partitions.
        partitions_asked: whether a spec names the number; otherwise it comes from a plan.
        replication: replication factor.
        replication_asked: whether a spec names the factor; otherwise it comes from the environment.
        config: required settings.
        at_creation: settings of new topics only; on an existing topic they are left as somebody set them.
        at_least: numeric settings with a minimum.
    """

    name: str
    partitions: int
    partitions_asked: bool = False
    replication: int = 1
    replication_asked: bool = False
    config: Mapping[str, str] = field(default_factory=dict)
    at_creation: Mapping[str, str] = field(default_factory=dict)
    at_least: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class ExistingTopic:
    """A topic as it exists on the brokers.

    Args:
        partitions: number of partitions.
        replication: lowest replication factor of its partitions.
        config: all settings with their current values, including the brokers' defaults.
    """

    partitions: int
    replication: int
    config: Mapping[str, str]


@dataclass(frozen=True)
class Changed:
    """A value before and after; before is None for a new topic."""

    before: str | None
    after: str


@dataclass(frozen=True)
class TopicChange:
    """The planned change of one topic.

    Args:
        name: name of the topic.
        actions: what is applied; empty when the topic is up to date or the change is refused.
        partitions: before and after; equal when unchanged.
        replication: before and after.
        config: changed settings with their values before and after.
        warnings: consequences that are easily missed.
        refused: changes that are not applied and how to proceed, one entry each: (given, need, fix).
    """

    name: str
    actions: tuple[Action, ...]
    partitions: Changed
    replication: Changed
    config: Mapping[str, Changed] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    refused: tuple[tuple[str, str, str], ...] = ()


def changes(wanted: Sequence[WantedTopic], existing: Mapping[str, ExistingTopic], *, lose_records: bool = False) -> tuple[TopicChange, ...]:
    """Plan the change of each topic, in the order wanted.

    Args:
        wanted: the topics; others on the brokers are ignored.
        existing: those of the wanted topics that exist, by name.
        lose_records: whether changes that delete records are allowed.
    """
    return tuple(_changed(topic, existing[topic.name], lose_records) if topic.name in existing else _created(topic) for topic in wanted)


def _created(topic: WantedTopic) -> TopicChange:
    least = {name: str(value) for name, value in topic.at_least.items()}
    config = {**topic.at_creation, **least, **topic.config}
    return TopicChange(
        name=topic.name,
        actions=("create",),
        partitions=Changed(None, str(topic.partitions)),
        replication=Changed(None, str(topic.replication)),
        config={name: Changed(None, value) for name, value in config.items()},
    )


def _changed(topic: WantedTopic, existing: ExistingTopic, lose_records: bool) -> TopicChange:
    config = dict(_settings(topic, existing))
    losses = [] if lose_records else [name for name, change in config.items() if _loses(name, change)]
    refused = (*_shrinks(topic, existing), *_copies(topic, existing), *(_loss(name, config[name]) for name in losses))
    return TopicChange(
        name=topic.name,
        actions=() if refused else tuple(_actions(topic, existing, config)),
        partitions=Changed(str(existing.partitions), str(max(topic.partitions, existing.partitions))),
        replication=Changed(str(existing.replication), str(existing.replication)),
        config=config,
        warnings=(*_growth(topic, existing), *_kept(topic, existing), *_lost(config)),
        refused=refused,
    )


def _actions(topic: WantedTopic, existing: ExistingTopic, config: Mapping[str, Changed]) -> Iterator[Action]:
    if topic.partitions > existing.partitions:
        yield "grow"
    if config:
        yield "configure"


def _settings(topic: WantedTopic, existing: ExistingTopic) -> Iterator[tuple[str, Changed]]:
    for name, value in topic.config.items():
        before = existing.config.get(name)
        if before is None or not _same(name, before, value):
            yield name, Changed(before, value)
    for name, least in topic.at_least.items():
        before = existing.config.get(name)
        if name not in topic.config and (before is None or (_number(before) or 0) < least):
            yield name, Changed(before, str(least))


def _same(name: str, one: str, other: str) -> bool:
    if name == CLEANUP_POLICY:
        return _policies(one) == _policies(other)
    first, second = _number(one), _number(other)
    return one == other if first is None or second is None else first == second


def _policies(value: str) -> frozenset[str]:
    return frozenset(part.strip() for part in value.split(",") if part.strip())


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _loses(name: str, change: Changed) -> bool:
    """Whether the change deletes records that were retained before."""
    if change.before is None:
        return False
    if name == CLEANUP_POLICY:
        return bool(_policies(change.after) - _policies(change.before))
    before, after = _number(change.before), _number(change.after)
    if name not in _KEEPING or before is None or after is None:
        return False
    return _limit(after) < _limit(before)


def _limit(value: float) -> float:
    return math.inf if value == _UNLIMITED else value


def _loss(name: str, change: Changed) -> tuple[str, str, str]:
    need = f"{name} of at least its current value, {change.before}: with less, the brokers delete existing records"
    return f"{name}: {change.after}", need, "use --lose-records if that is intended, or remove it from the spec"


def _lost(config: Mapping[str, Changed]) -> Iterator[str]:
    for name, change in config.items():
        if _loses(name, change):
            yield f"{name} from {change.before} to {change.after}: the brokers delete existing records"


def _shrinks(topic: WantedTopic, existing: ExistingTopic) -> Iterator[tuple[str, str, str]]:
    if topic.partitions_asked and topic.partitions < existing.partitions:
        need = f"at least {existing.partitions}: the number of partitions of a topic cannot be reduced"
        yield f"{topic.partitions} partitions", need, f"partitions: {existing.partitions}, or a topic with another name"


def _copies(topic: WantedTopic, existing: ExistingTopic) -> Iterator[tuple[str, str, str]]:
    more = topic.replication > existing.replication
    if more or (topic.replication_asked and topic.replication < existing.replication):
        need = (
            f"{existing.replication}, the topic's current value: moving replicas between brokers must be planned with regard to their load"
        )
        fix = f"replication: {existing.replication} in the spec's topics, or move the replicas with kafka-reassign-partitions"
        yield f"{topic.replication} replicas", need, fix


def _growth(topic: WantedTopic, existing: ExistingTopic) -> Iterator[str]:
    if topic.partitions <= existing.partitions:
        return
    compacted = "compact" in topic.config.get(CLEANUP_POLICY, existing.config.get(CLEANUP_POLICY, ""))
    moves = f"from {existing.partitions} to {topic.partitions} partitions: most keys map to another partition from now on"
    if compacted:
        yield f"{moves}, and a key's last record in the old partition is never compacted"
    else:
        yield f"{moves}, so a key's records are ordered only before and after the change"


def _kept(topic: WantedTopic, existing: ExistingTopic) -> Iterator[str]:
    if not topic.partitions_asked and topic.partitions < existing.partitions:
        yield f"keeps {existing.partitions} partitions; the plan needs {topic.partitions}"
    if not topic.replication_asked and topic.replication < existing.replication:
        yield f"keeps {existing.replication} replicas; the environment's default is {topic.replication}"
