"""The errors of Kafka's sizing."""

from __future__ import annotations

from penstock.sizing.errors import DocumentError, Infeasible


class KafkaOutOfReach(Infeasible):
    """No cluster of this kind carries the load, however many brokers of whatever type it has."""

    code = "SIZ-040"
    title = "the load is above what such a Kafka cluster carries"


class ClusterTooSmall(Infeasible):
    """The environment's Kafka cluster, with its brokers' type and number, does not carry the load."""

    code = "SIZ-041"
    title = "the Kafka cluster is too small for the load"


class UnknownBrokerType(DocumentError):
    """The broker type is none whose limits are known."""

    code = "SIZ-042"
    title = "unknown Kafka broker type"
