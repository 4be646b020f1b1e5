"""Errors of ``penstock topics`` (TOP-...)."""

from __future__ import annotations

from penstock.sizing.errors import CheckFailed, DocumentError, RunFailed


class TopicRefused(CheckFailed):
    """A requested change would shrink a topic, lose records without consent, or is not possible for an existing topic."""

    code = "TOP-001"
    title = "topic change refused"


class BrokersNotReached(RunFailed):
    """No broker responds, or the brokers reject this client."""

    code = "TOP-002"
    title = "Kafka brokers unreachable"


class ChangeRefused(RunFailed):
    """The brokers rejected the creation or change of a topic: unknown setting, invalid value, too few brokers or missing permissions."""

    code = "TOP-003"
    title = "brokers rejected a change"


class NoBrokersNamed(DocumentError):
    """The environment has no Kafka cluster of its own and specifies no bootstrap servers."""

    code = "TOP-004"
    title = "bootstrap servers not specified"


class NoSecretNamed(DocumentError):
    """The brokers' listener asks for user and password, and neither the environment nor the command names the secret with them."""

    code = "TOP-008"
    title = "secret with the brokers' credentials not specified"


class KafkaClusterNotFound(RunFailed):
    """MSK has no cluster with the environment's name, or the cluster is not active yet."""

    code = "TOP-005"
    title = "Kafka cluster not found"


class ChangeNotSeen(RunFailed):
    """The brokers accepted a change, but it did not become visible in time."""

    code = "TOP-006"
    title = "topic change not visible"


class TopicRightMissing(RunFailed):
    """The role of this command lacks a right that MSK's topic API requires."""

    code = "TOP-009"
    title = "right on topics missing"


class NotByMsk(DocumentError):
    """MSK's API does not manage the topics of these brokers: they are serverless, of an old version, or not MSK's."""

    code = "TOP-010"
    title = "topics not managed by MSK's API"


class PodNotStarted(RunFailed):
    """The pod that manages topics in the cluster has not started: no node, no image, or no permission to run."""

    code = "TOP-011"
    title = "topics: pod not started"


class PodFailed(RunFailed):
    """The pod that manages topics in the cluster has ended without an answer."""

    code = "TOP-012"
    title = "topics: pod failed"


class PlanOutdated(RunFailed):
    """The topics have changed between the plan that was shown and its apply; nothing was changed."""

    code = "TOP-013"
    title = "plan of topics outdated"


class NotInCluster(DocumentError):
    """Topics can't be managed in the cluster: the environment has none, or no job whose image could run there."""

    code = "TOP-014"
    title = "topics not managed in the cluster"


class NotAgreed(CheckFailed):
    """The changes were shown and not confirmed; nothing was changed."""

    code = "TOP-007"
    title = "changes not confirmed"
