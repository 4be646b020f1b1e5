"""Errors of detached runs (RUN-06x)."""

from __future__ import annotations

from penstock.sizing.errors import DocumentError, RunFailed


class DetachedAlready(DocumentError):
    """A detached run of the job is on this machine."""

    code = "RUN-060"
    title = "the job runs detached already"


class DetachedRunEnded(RunFailed):
    """A detached run has ended before it was ready."""

    code = "RUN-061"
    title = "the detached run has ended"


class DetachedRunStays(RunFailed):
    """A detached run has not ended after it was asked to."""

    code = "RUN-062"
    title = "the detached run does not end"
