"""The configuration of the brokers."""

from __future__ import annotations

from penstock.infra.parts.kafka import Kafka
from penstock.jobs.spec.requested_topics import MAX_RECORD_BYTES

# Source: Apache Kafka, "Broker Configs", transaction.max.timeout.ms and transactional.id.expiration.ms. Both are Kafka's defaults, set
# explicitly for writers that depend on them: a transaction may last as long as a slow micro-batch, and an id outlives a long weekend.
TRANSACTION_LIMIT_MS = 900_000
TRANSACTIONAL_ID_KEPT_MS = 604_800_000


def server_properties(kafka: Kafka) -> dict[str, str]:
    """The contents of an MSK configuration, by Kafka's names.

    Topics are created by a plan that people have reviewed, so automatic topic creation is off. A quarantine record is larger than the
    original
    record, so the maximum record size is above Kafka's default. An acknowledged write is on all replicas but one, and unclean leader
    election
    is off because it would lose acknowledged writes.

    Args:
        kafka: of the environment.
    """
    always = {"auto.create.topics.enable": "false", "message.max.bytes": str(MAX_RECORD_BYTES)}
    if kafka.kind == "express":
        # Express always keeps three replicas with two in sync and elects only those; it does not accept these settings.
        return always
    return {
        **always,
        "replica.fetch.max.bytes": str(MAX_RECORD_BYTES),
        "default.replication.factor": str(kafka.replication),
        "min.insync.replicas": str(max(1, kafka.replication - 1)),
        "unclean.leader.election.enable": "false",
        "num.partitions": "1",
        "log.retention.ms": str(kafka.retention),
        "transaction.max.timeout.ms": str(TRANSACTION_LIMIT_MS),
        "transactional.id.expiration.ms": str(TRANSACTIONAL_ID_KEPT_MS),
    }
