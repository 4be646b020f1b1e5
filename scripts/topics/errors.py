"""Errors of ``penstock topics`` (TOP-...)."""

from __future__ import annotations

from penstock.sizing.errors import CheckFailed, DocumentError, RunFailed


class TopicRefused(CheckFailed):
    """What is asked of a topic would shrink it, lose records that nobody gave up, or can't be done to a topic that is there."""

    code = "TOP-001"
    title = "this is not done to a topic"


class BrokersNotReached(RunFailed):
    """No broker answers, or it does not let this client in."""

    code = "TOP-002"
    title = "the Kafka brokers do not answer"


class ChangeRefused(RunFailed):
    """The brokers refuse to create or to change a topic: an unknown setting, a bad value, too few brokers, or no right to do it."""

    code = "TOP-003"
    title = "the brokers refuse a change"


class NoBrokersNamed(DocumentError):
    """The environment has no Kafka of its own and names none."""

    code = "TOP-004"
    title = "no brokers are known"


class KafkaClusterNotFound(RunFailed):
    """MSK has no cluster of the environment's name, or it does not take clients yet."""

    code = "TOP-005"
    title = "the environment's Kafka cluster is not there"


class ChangeNotSeen(RunFailed):
    """The brokers agreed to a change, and do not show it in time."""

    code = "TOP-006"
    title = "a change of a topic does not show"


class NotAgreed(CheckFailed):
    """The changes were shown and not agreed to."""

    code = "TOP-007"
    title = "nothing was changed"
