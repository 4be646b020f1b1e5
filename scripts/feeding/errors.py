"""Errors of ``penstock feed`` (FEED-...)."""

from __future__ import annotations

from penstock.sizing.errors import DocumentError, RunFailed


class TopicMissing(RunFailed):
    """A topic that a source of the job reads does not exist on the brokers."""

    code = "FEED-001"
    title = "topic does not exist"


class NothingToFeed(DocumentError):
    """No records can be made for a source: it reads no topic, or its values need a generator."""

    code = "FEED-002"
    title = "no records for a source"


class RecordsRefused(RunFailed):
    """The brokers did not accept all records."""

    code = "FEED-003"
    title = "records rejected"
