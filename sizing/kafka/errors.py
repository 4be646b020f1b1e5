"""Errors of Kafka sizing."""

from __future__ import annotations

from penstock.sizing.errors import DocumentError, Infeasible


class KafkaOutOfReach(Infeasible):
    """No cluster of this type can carry the load, whatever the type and number of its brokers."""

    code = "SIZ-040"
    title = "load exceeds the limits of the Kafka cluster type"


class ClusterTooSmall(Infeasible):
    """The environment's Kafka cluster, with its broker type and number of brokers, cannot carry the load."""

    code = "SIZ-041"
    title = "Kafka cluster too small for the load"


class UnknownBrokerType(DocumentError):
    """The limits of this broker type are not known."""

    code = "SIZ-042"
    title = "unknown Kafka broker type"
