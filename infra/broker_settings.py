"""The settings of the brokers themselves."""

from __future__ import annotations

from penstock.infra.parts.kafka import Kafka
from penstock.jobs.spec.requested_topics import MAX_RECORD_BYTES

# Source: Apache Kafka, "Broker Configs", transaction.max.timeout.ms and transactional.id.expiration.ms. Both are Kafka's defaults, written
# down for writers that rely on them: a transaction may take as long as a slow micro-batch, and an id outlives a long weekend.
TRANSACTION_LIMIT_MS = 900_000
TRANSACTIONAL_ID_KEPT_MS = 604_800_000


def server_properties(kafka: Kafka) -> dict[str, str]:
    """What an MSK configuration holds, by Kafka's names.

    Topics are made by a plan that people have seen, so the brokers make none by themselves. A record in quarantine is larger than the one
    that the brokers took, so they take more than their default. An acknowledged write is on all copies but one, and a copy that
    has fallen behind never leads: it would lose what was acknowledged.

    Args:
        kafka: of the environment.
    """
    always = {"auto.create.topics.enable": "false", "message.max.bytes": str(MAX_RECORD_BYTES)}
    if kafka.kind == "express":
        # Express keeps three copies, two in sync, and elects only those; it takes no settings of these.
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
