"""Errors of the brokers and their topics (JOB-...)."""

from __future__ import annotations

from penstock.sizing.errors import RunFailed, ToolMissing


class BrokersUnreachable(RunFailed):
    """No broker responds."""

    code = "JOB-001"
    title = "Kafka brokers unreachable"


class TopicNotFound(RunFailed):
    """A topic of the spec does not exist on the brokers."""

    code = "JOB-002"
    title = "topic not found"


class NoKafkaCredentials(ToolMissing):
    """The brokers use IAM authentication, and AWS credentials are missing or cannot be loaded."""

    code = "JOB-010"
    title = "no AWS credentials for the Kafka brokers"


class KafkaCredentialsRefused(RunFailed):
    """The brokers reject user and password or the client's certificate, or their listener does not have the SASL mechanism."""

    code = "JOB-111"
    title = "Kafka brokers rejected the credentials"


class TopicAccessDenied(RunFailed):
    """The brokers don't let the job's client describe a topic of the spec: its role, or its ACLs, lack a right."""

    code = "JOB-125"
    title = "Kafka brokers denied access to a topic"


class OffsetGone(RunFailed):
    """A consumer group has committed an offset that its topic no longer or not yet has: records would be skipped or read twice."""

    code = "JOB-020"
    title = "committed offset out of range"


class NotCommitted(RunFailed):
    """A job is to start at the committed offsets of a consumer group that has none of a partition: it has never read it, or is gone."""

    code = "JOB-107"
    title = "no committed offset to start at"


class RecordsGone(RunFailed):
    """A topic no longer has the records that the job is to read next: they are older than its retention, or it was created anew."""

    code = "JOB-106"
    title = "unread records are gone"
