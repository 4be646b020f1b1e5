"""Topics by MSK's API: each operation is one of an admin client on the broker that runs on this machine.

Like AWS, it shows changes late: the first description of a topic after a change of it is the one from before. AWS says about a minute.
Source: MSK's developer guide, "Topic Operations"; MSK's API reference, "Topics".
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource, ConfigSource
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewPartitions, NewTopic

from penstock.scripts.emulation.checked_service import Answer, Asked, Operation, Refused
from penstock.scripts.emulation.msk.clusters import BROKERS_VARIABLE
from penstock.scripts.emulation.msk.state import Cluster, Msk, bad_request, not_found, page

ANSWER_S = 10.0
_ACTIVE = "ACTIVE"
_EXCEPTIONS = {
    KafkaError.TOPIC_ALREADY_EXISTS: "TopicExistsException",
    KafkaError.UNKNOWN_TOPIC_OR_PART: "UnknownTopicOrPartitionException",
    KafkaError.REASSIGNMENT_IN_PROGRESS: "ReassignmentInProgressException",
    KafkaError.NOT_CONTROLLER: "NotControllerException",
    KafkaError._TIMED_OUT: "KafkaTimeoutException",
    KafkaError.REQUEST_TIMED_OUT: "KafkaTimeoutException",
}


def create_topic(msk: Msk, asked: Asked) -> Answer:
    """CreateTopic."""
    cluster, name = msk.provisioned(asked), asked["TopicName"]
    new = NewTopic(name, num_partitions=asked["PartitionCount"], replication_factor=asked["ReplicationFactor"], config=_settings(asked))
    before = described(name)
    _done(lambda admin: admin.create_topics([new], request_timeout=ANSWER_S))
    cluster.late[name] = before
    return {"TopicArn": _arn(cluster, name), "TopicName": name, "Status": "CREATING"}


def update_topic(msk: Msk, asked: Asked) -> Answer:
    """UpdateTopic: either the number of partitions or the settings, which are then all that the topic has."""
    cluster, name = msk.provisioned(asked), asked["TopicName"]
    if ("PartitionCount" in asked) == ("Configs" in asked):
        raise bad_request("You must specify either configs or partitionCount to update.")
    before = _existing(name)
    if "PartitionCount" in asked:
        grown = NewPartitions(name, asked["PartitionCount"])
        _done(lambda admin: admin.create_partitions([grown], request_timeout=ANSWER_S))
    else:
        replaced = _replaced(name, _settings(asked))
        _done(lambda admin: admin.incremental_alter_configs([replaced], request_timeout=ANSWER_S))
    cluster.late[name] = before
    return {"TopicArn": _arn(cluster, name), "TopicName": name, "Status": "UPDATING"}


def delete_topic(msk: Msk, asked: Asked) -> Answer:
    """DeleteTopic."""
    cluster, name = msk.provisioned(asked), asked["TopicName"]
    before = _existing(name)
    _done(lambda admin: admin.delete_topics([name], request_timeout=ANSWER_S))
    cluster.late[name] = before
    return {"TopicArn": _arn(cluster, name), "TopicName": name, "Status": "DELETING"}


def describe_topic(msk: Msk, asked: Asked) -> Answer:
    """DescribeTopic."""
    cluster, name = msk.provisioned(asked), asked["TopicName"]
    with _reading():
        found = cluster.late.pop(name) if name in cluster.late else described(name)
    if found is None:
        raise not_found(f"Topic not found: {name}")
    return {**found, "TopicArn": _arn(cluster, name)}


def list_topics(msk: Msk, asked: Asked) -> Answer:
    """ListTopics: those whose names begin with the filter."""
    cluster = msk.provisioned(asked)
    prefix = asked.get("TopicNameFilter", "")
    with _reading():
        known = _answer(lambda: _admin().list_topics(timeout=ANSWER_S).topics)
    topics = [
        {
            "TopicArn": _arn(cluster, name),
            "TopicName": name,
            "PartitionCount": len(topic.partitions),
            "ReplicationFactor": _replication(topic),
            "OutOfSyncReplicaCount": sum(len(each.replicas) - len(each.isrs) for each in topic.partitions.values()),
        }
        for name, topic in sorted(known.items())
        if name.startswith(prefix)
    ]
    return page(topics, asked, "Topics")


def describe_topic_partitions(msk: Msk, asked: Asked) -> Answer:
    """DescribeTopicPartitions."""
    name = asked["TopicName"]
    msk.provisioned(asked)
    with _reading():
        topic = _answer(lambda: _admin().list_topics(timeout=ANSWER_S).topics.get(name))
    if topic is None:
        raise not_found(f"Topic not found: {name}")
    parts = [
        {"Partition": number, "Leader": part.leader, "Replicas": list(part.replicas), "Isr": list(part.isrs)}
        for number, part in sorted(topic.partitions.items())
    ]
    return page(parts, asked, "Partitions")


def described(name: str) -> dict[str, Any] | None:
    """A topic as the broker has it, in the API's words but without its ARN; None if it has none of this name."""
    topic = _answer(lambda: _admin().list_topics(timeout=ANSWER_S).topics.get(name))
    if topic is None:
        return None
    settings = json.dumps({entry.name: entry.value for entry in _own_settings(name)})
    return {
        "TopicName": name,
        "PartitionCount": len(topic.partitions),
        "ReplicationFactor": _replication(topic),
        "Configs": base64.b64encode(settings.encode()).decode(),
        "Status": _ACTIVE,
    }


def _existing(name: str) -> dict[str, Any]:
    found = described(name)
    if found is None:
        raise Refused("UnknownTopicOrPartitionException", f"The topic {name} does not exist")
    return found


def _own_settings(name: str) -> list[ConfigEntry]:
    asked = [ConfigResource(ResourceType.TOPIC, name)]
    found = _done(lambda admin: admin.describe_configs(asked, request_timeout=ANSWER_S))
    return [entry for entry in found.values() if entry.source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value]


def _replaced(name: str, wanted: Mapping[str, str]) -> ConfigResource:
    gone = [entry.name for entry in _own_settings(name) if entry.name not in wanted]
    entries = [ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET) for key, value in wanted.items()]
    entries += [ConfigEntry(key, None, incremental_operation=AlterConfigOpType.DELETE) for key in gone]
    return ConfigResource(ResourceType.TOPIC, name, incremental_configs=entries)


def _settings(asked: Asked) -> dict[str, str]:
    try:
        settings = json.loads(base64.b64decode(asked.get("Configs", ""), validate=True) or "{}")
        return {name: str(value) for name, value in settings.items()}
    except (ValueError, AttributeError):
        raise bad_request("The topic configurations are not a JSON object in Base64", "configs") from None


def _replication(topic: Any) -> int:
    return min((len(part.replicas) for part in topic.partitions.values()), default=0)


def _admin() -> AdminClient:
    address = os.environ.get(BROKERS_VARIABLE)
    if address is None:
        raise Refused("ClusterConnectivityException", "No broker runs on this machine")
    return AdminClient({"bootstrap.servers": address, "log_level": 0})


def _done(ask: Callable[[AdminClient], Mapping[Any, Future[Any]]]) -> Any:
    """The result of a request for one topic. The client must live until then."""
    admin = _admin()
    (future,) = ask(admin).values()
    return _answer(future.result)


@contextmanager
def _reading() -> Iterator[None]:
    """Operations that read don't know Kafka's own errors."""
    try:
        yield
    except Refused as refused:
        raise Refused("InternalServerErrorException", refused.message) from None


def _answer(ask: Callable[[], Any]) -> Any:
    try:
        return ask()
    except KafkaException as error:
        fault = error.args[0]
        # The client's own codes are negative: no broker has responded.
        code = _EXCEPTIONS.get(fault.code(), "ClusterConnectivityException" if fault.code() < 0 else "KafkaRequestException")
        raise Refused(code, fault.str()) from None


def _arn(cluster: Cluster, name: str) -> str:
    return f"{cluster.arn.replace(':cluster/', ':topic/')}/{name}"


OPERATIONS: Mapping[str, Operation] = {
    "CreateTopic": create_topic,
    "UpdateTopic": update_topic,
    "DeleteTopic": delete_topic,
    "DescribeTopic": describe_topic,
    "DescribeTopicPartitions": describe_topic_partitions,
    "ListTopics": list_topics,
}
