"""Errors of sinks (JOB-...)."""

from __future__ import annotations

from penstock.sizing.errors import RunFailed


class StagedPartGone(RunFailed):
    """A part file listed in a manifest is neither staged nor published."""

    code = "JOB-006"
    title = "staged part file lost"


class ReplayDiffers(RunFailed):
    """A micro-batch that is run again produces rows that differ from those of its first run."""

    code = "JOB-007"
    title = "replayed micro-batch produced different rows"


class TransactionsRefused(RunFailed):
    """The brokers do not allow an exactly-once sink to write transactions with its settings."""

    code = "JOB-060"
    title = "brokers rejected the sink's transactions"


class ClientPropertiesRefused(RunFailed):
    """The Kafka client of a sink does not take the values of its properties."""

    code = "JOB-110"
    title = "Kafka client rejected the sink's properties"


class MarksDisagree(RunFailed):
    """The brokers hold the marker of a micro-batch that this checkpoint has not written yet: a copy of it has advanced separately."""

    code = "JOB-061"
    title = "another run has written with this checkpoint's identity"


class MarksExpired(RunFailed):
    """A micro-batch was interrupted so long ago that the brokers may no longer know which part of it they hold."""

    code = "JOB-063"
    title = "transaction markers may have expired"


class TableDoesNotFit(RunFailed):
    """A sink's table does not exist, lacks a column, or has no unique constraint on the key."""

    code = "JOB-054"
    title = "table does not match its sink"


class RowsRefused(RunFailed):
    """A database rejected rows because of their values. None of the task's rows are written."""

    code = "JOB-055"
    title = "database rejected rows"


class WebhookFailed(RunFailed):
    """An endpoint rejected a webhook request, or did not respond after all attempts."""

    code = "JOB-056"
    title = "webhook delivery failed"


class SinkFunctionFailed(RunFailed):
    """A sink's function is not defined in the app's module, or raised an exception."""

    code = "JOB-057"
    title = "sink function failed"
