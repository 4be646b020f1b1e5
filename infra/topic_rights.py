"""The permissions of whoever manages the topics of an environment: of its own cluster alone, and none on records.

Source: Amazon MSK Developer Guide, "IAM permissions for topic operations APIs" and "Semantics of IAM authorization policy actions".
"""

from __future__ import annotations

from penstock.infra.environment import Environment
from penstock.infra.parts.kafka import Kafka
from penstock.infra.policies import Condition, Statement, allow

_CLUSTER_ACTIONS = ("kafka-cluster:Connect", "kafka-cluster:DescribeCluster")
_TOPIC_ACTIONS = (
    "kafka-cluster:AlterTopic",
    "kafka-cluster:AlterTopicDynamicConfiguration",
    "kafka-cluster:CreateTopic",
    "kafka-cluster:DescribeTopic",
    "kafka-cluster:DescribeTopicDynamicConfiguration",
)
_API_ACTIONS = ("kafka:CreateTopic", "kafka:DescribeTopic", "kafka:UpdateTopic")


def by_brokers(environment: Environment, partition: str) -> list[Statement]:
    """To manage topics by the brokers' own protocol, and to read the secret of external ones.

    Args:
        environment: of the topics, whose cluster has its name, or is the external one that it names.
        partition: of AWS, such as ``aws``.
    """
    secret = _secret(environment.spec.kafka)
    if not _is_msks(environment):
        return secret
    cluster, topics = _arns(environment, partition)
    return [allow("ConnectToBrokers", _CLUSTER_ACTIONS, [cluster]), allow("ManageTopics", _TOPIC_ACTIONS, [topics]), *secret]


def by_msk(environment: Environment, partition: str) -> list[Statement]:
    """To manage topics by MSK's API, in addition to those by the brokers.

    Args:
        environment: as in `by_brokers`.
        partition: as in `by_brokers`.
    """
    return [allow("ManageTopicsByMsk", _API_ACTIONS, [*_arns(environment, partition)])] if _is_msks(environment) else []


def _is_msks(environment: Environment) -> bool:
    kafka = environment.spec.kafka
    return kafka is not None and (kafka.kind != "external" or kafka.cluster_arn is not None)


def _arns(environment: Environment, partition: str) -> tuple[str, str]:
    spec = environment.spec
    named = None if spec.kafka is None else spec.kafka.cluster_arn
    cluster = named or f"arn:{partition}:kafka:{spec.region}:{spec.account}:cluster/{environment.prefix}/*"
    return cluster, f"{cluster.replace(':cluster/', ':topic/')}/*"


def _secret(kafka: Kafka | None) -> list[Statement]:
    if kafka is None or kafka.secret is None:
        return []
    read = allow("ReadBrokersSecret", ["secretsmanager:GetSecretValue"], [kafka.secret])
    if kafka.key is None:
        return [read]
    condition: Condition = {
        "StringLike": {"kms:ViaService": f"secretsmanager.{kafka.secret.split(':')[3]}.*"},
        "StringEquals": {"kms:EncryptionContext:SecretARN": kafka.secret},
    }
    return [read, allow("UseKeyOfBrokersSecret", ["kms:Decrypt"], [kafka.key], condition)]
