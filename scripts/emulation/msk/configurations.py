"""Configurations: server properties of brokers, in revisions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from penstock.scripts.emulation.checked_service import Answer, Asked, Operation
from penstock.scripts.emulation.msk.state import Configuration, Msk, bad_request, conflict, need_kafka_version, new_arn, now, page

_NAME = re.compile(r"[0-9A-Za-z][0-9A-Za-z-]*")
# Properties that MSK accepts. Source: MSK's developer guide, "Custom Amazon MSK configurations".
_BOOLEANS = frozenset(
    {
        "allow.everyone.if.no.acl.found",
        "auto.create.topics.enable",
        "delete.topic.enable",
        "unclean.leader.election.enable",
    }
)
_CHOICES: Mapping[str, frozenset[str]] = {
    "compression.type": frozenset({"gzip", "snappy", "lz4", "zstd", "uncompressed", "producer"}),
    "log.cleanup.policy": frozenset({"delete", "compact", "compact,delete", "delete,compact"}),
    "log.message.timestamp.type": frozenset({"CreateTime", "LogAppendTime"}),
    "replica.selector.class": frozenset({"org.apache.kafka.common.replica.RackAwareReplicaSelector"}),
}
_NUMBERS = frozenset(
    {
        "connections.max.idle.ms",
        "default.replication.factor",
        "group.initial.rebalance.delay.ms",
        "group.max.session.timeout.ms",
        "group.min.session.timeout.ms",
        "leader.imbalance.per.broker.percentage",
        "log.cleaner.delete.retention.ms",
        "log.cleaner.min.cleanable.ratio",
        "log.flush.interval.messages",
        "log.flush.interval.ms",
        "log.local.retention.bytes",
        "log.local.retention.ms",
        "log.message.timestamp.after.max.ms",
        "log.message.timestamp.before.max.ms",
        "log.message.timestamp.difference.max.ms",
        "log.retention.bytes",
        "log.retention.hours",
        "log.retention.minutes",
        "log.retention.ms",
        "log.roll.ms",
        "log.segment.bytes",
        "log.segment.delete.delay.ms",
        "max.incremental.fetch.session.cache.slots",
        "message.max.bytes",
        "min.insync.replicas",
        "num.io.threads",
        "num.network.threads",
        "num.partitions",
        "num.recovery.threads.per.data.dir",
        "num.replica.fetchers",
        "offsets.retention.minutes",
        "offsets.topic.replication.factor",
        "replica.fetch.max.bytes",
        "replica.fetch.response.max.bytes",
        "replica.lag.time.max.ms",
        "replica.socket.receive.buffer.bytes",
        "socket.receive.buffer.bytes",
        "socket.request.max.bytes",
        "socket.send.buffer.bytes",
        "transaction.max.timeout.ms",
        "transaction.state.log.min.isr",
        "transaction.state.log.replication.factor",
        "transactional.id.expiration.ms",
        "zookeeper.session.timeout.ms",
    }
)


def create_configuration(msk: Msk, asked: Asked) -> Answer:
    """CreateConfiguration: its first revision."""
    name = asked["Name"]
    if not _NAME.fullmatch(name):
        raise bad_request(f"The name {name} has other than letters, digits and hyphens", "name")
    if any(other.name == name for other in msk.configurations.values()):
        raise conflict(f"A configuration with the name {name} exists")
    versions = tuple(asked.get("KafkaVersions", ()))
    for version in versions:
        need_kafka_version(version)
    made = Configuration(new_arn(msk.place, "configuration", name), name, now(), versions)
    _add_revision(made, asked)
    msk.configurations[made.arn] = made
    return {key: value for key, value in _described(made).items() if key not in ("Description", "KafkaVersions")}


def describe_configuration(msk: Msk, asked: Asked) -> Answer:
    """DescribeConfiguration: with its latest revision."""
    return _described(msk.configuration(asked["Arn"]))


def describe_configuration_revision(msk: Msk, asked: Asked) -> Answer:
    """DescribeConfigurationRevision: with its properties."""
    revision = asked["Revision"]
    configuration = msk.configuration(asked["Arn"], revision)
    return {"Arn": configuration.arn, **configuration.revisions[revision - 1]}


def list_configurations(msk: Msk, asked: Asked) -> Answer:
    """ListConfigurations."""
    return page([_described(one) for one in msk.configurations.values()], asked, "Configurations")


def list_configuration_revisions(msk: Msk, asked: Asked) -> Answer:
    """ListConfigurationRevisions."""
    return page([_summary(revision) for revision in msk.configuration(asked["Arn"]).revisions], asked, "Revisions")


def update_configuration(msk: Msk, asked: Asked) -> Answer:
    """UpdateConfiguration: adds a revision; earlier ones are kept."""
    configuration = msk.configuration(asked["Arn"])
    _add_revision(configuration, asked)
    return {"Arn": configuration.arn, "LatestRevision": _summary(configuration.revisions[-1])}


def delete_configuration(msk: Msk, asked: Asked) -> Answer:
    """DeleteConfiguration: refused while a cluster uses it."""
    configuration = msk.configuration(asked["Arn"])
    used = [
        one.name
        for one in msk.clusters.values()
        if one.about.get("CurrentBrokerSoftwareInfo", {}).get("ConfigurationArn") == configuration.arn
    ]
    if used:
        raise bad_request(f"The configuration is in use by {', '.join(used)}", "arn")
    del msk.configurations[configuration.arn]
    return {"Arn": configuration.arn, "State": "DELETING"}


def software(msk: Msk, kafka_version: str, asked: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the software of a cluster's brokers.

    Args:
        msk: MSK with the configuration.
        kafka_version: the Kafka version.
        asked: ConfigurationInfo; None for MSK's default configuration.

    Returns:
        BrokerSoftwareInfo.

    Raises:
        Refused: BadRequestException.
    """
    if asked is None:
        return {"KafkaVersion": kafka_version}
    configuration = msk.configurations.get(asked["Arn"])
    if configuration is None or not 1 <= asked["Revision"] <= len(configuration.revisions):
        raise bad_request(f"Configuration {asked['Arn']} has no revision {asked['Revision']}", "configurationInfo")
    if configuration.kafka_versions and kafka_version not in configuration.kafka_versions:
        message = f"Configuration {configuration.name} is for Kafka {', '.join(configuration.kafka_versions)}, not for {kafka_version}"
        raise bad_request(message, "configurationInfo")
    return {"KafkaVersion": kafka_version, "ConfigurationArn": configuration.arn, "ConfigurationRevision": asked["Revision"]}


def _add_revision(configuration: Configuration, asked: Asked) -> None:
    text: bytes = asked["ServerProperties"]
    _need_known(text)
    revision = {"CreationTime": now(), "Description": asked.get("Description", ""), "ServerProperties": text}
    configuration.revisions.append({**revision, "Revision": len(configuration.revisions) + 1})


def _need_known(text: bytes) -> None:
    """Check that MSK accepts the properties."""
    try:
        lines = text.decode("utf-8").splitlines()
    except UnicodeDecodeError:
        raise bad_request("The server properties are not UTF-8", "serverProperties") from None
    seen: set[str] = set()
    for line in lines:
        if not line.strip() or line.lstrip().startswith(("#", "!")):
            continue
        key, _, value = (part.strip() for part in line.partition("="))
        if key in seen or not _fits(key, value):
            raise bad_request(f"The server property {line.strip()!r} is unknown, wrong or given twice", "serverProperties")
        seen.add(key)


def _fits(key: str, value: str) -> bool:
    if key in _BOOLEANS:
        return value in ("true", "false")
    if key in _CHOICES:
        return value in _CHOICES[key]
    return key in _NUMBERS and re.fullmatch(r"-?\d+(\.\d+)?", value) is not None


def _described(one: Configuration) -> dict[str, Any]:
    latest = one.revisions[-1]
    named = {"Arn": one.arn, "Name": one.name, "CreationTime": one.since, "Description": one.revisions[0]["Description"]}
    return {**named, "KafkaVersions": list(one.kafka_versions), "LatestRevision": _summary(latest), "State": "ACTIVE"}


def _summary(revision: Mapping[str, Any]) -> dict[str, Any]:
    return {key: revision[key] for key in ("CreationTime", "Description", "Revision")}


OPERATIONS: Mapping[str, Operation] = {
    "CreateConfiguration": create_configuration,
    "DescribeConfiguration": describe_configuration,
    "DescribeConfigurationRevision": describe_configuration_revision,
    "ListConfigurations": list_configurations,
    "ListConfigurationRevisions": list_configuration_revisions,
    "UpdateConfiguration": update_configuration,
    "DeleteConfiguration": delete_configuration,
}
