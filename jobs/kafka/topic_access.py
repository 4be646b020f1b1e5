"""Topics that the brokers hide from a client: without the right to describe one, a list of topics leaves it out as if it did not exist."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from confluent_kafka import Consumer, KafkaError

from penstock.jobs.configuration.kafka_access import KafkaAccess
from penstock.jobs.kafka.errors import TopicAccessDenied
from penstock.jobs.kafka.security import client_settings

Use = Literal["read", "write"]
# Of the role that an environment gives a job: the statement and its actions. Source: Amazon MSK Developer Guide, "Semantics of IAM
# authorization policy actions and resources", which also names the operations of ACLs.
STATEMENTS: dict[Use, tuple[str, Sequence[str]]] = {
    "read": ("ReadOwnTopics", ("kafka-cluster:DescribeTopic", "kafka-cluster:ReadData")),
    "write": ("WriteOwnTopics", ("kafka-cluster:DescribeTopic", "kafka-cluster:WriteData")),
}
_ACLS: dict[Use, str] = {"read": "DESCRIBE and READ", "write": "DESCRIBE and WRITE"}


def hidden(access: KafkaAccess, topics: Sequence[str], use: Use, timeout_s: float) -> list[TopicAccessDenied]:
    """An error for each of these topics that the client has no right to describe; whether it exists the brokers don't say then.

    Args:
        access: to the brokers, with the client's credentials.
        topics: names that a list of the brokers' topics leaves out.
        use: what the job does with them.
        timeout_s: how long an answer may take, in seconds.

    Raises:
        KafkaException: the brokers did not respond.
    """
    # A consumer, so that asking creates no topic.
    settings = {**client_settings(access), "group.id": "penstock", "allow.auto.create.topics": False, "log_level": 0}
    asking = Consumer(settings)
    try:
        return [_denied(access, topic, use) for topic in topics if _is_hidden(asking, topic, timeout_s)]
    finally:
        asking.close()


def _is_hidden(asking: Consumer, topic: str, timeout_s: float) -> bool:
    error = asking.list_topics(topic, timeout=timeout_s).topics[topic].error
    return error is not None and error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED


def _denied(access: KafkaAccess, topic: str, use: Use) -> TopicAccessDenied:
    path, given = f"topic {topic}", "the brokers don't let this client describe it, or there is none"
    if access.security == "iam":
        statement, actions = STATEMENTS[use]
        need = f"the actions {' and '.join(actions)}, which the statement {statement} of the job's role allows"
        fix = "deploy the stack jobs, which has the job's role, and check clusterArn of external brokers"
        return TopicAccessDenied(path=path, given=given, need=need, fix=fix)
    need = f"ACLs that allow the client {_ACLS[use]}"
    return TopicAccessDenied(path=path, given=given, need=need, fix="add them to the topic, or correct its name in the spec")
