"""Errors of streams between sources and sinks (JOB-...)."""

from __future__ import annotations

from penstock.sizing.errors import RunFailed


class AppFailed(RunFailed):
    """The app's module cannot be imported, or its `build` raised an exception."""

    code = "JOB-003"
    title = "app failed before the query started"


class QuarantineLimitReached(RunFailed):
    """More records of a micro-batch are malformed than the spec allows. Nothing of the micro-batch is written."""

    code = "JOB-070"
    title = "quarantine limit exceeded"


class TaskWithoutContext(RunFailed):
    """A task did not receive its micro-batch's number, its checkpoint or the current watermark from the driver."""

    code = "JOB-084"
    title = "task without the context of its micro-batch"
