"""Errors of the local servers for a job's connections (RUN-030 to RUN-039)."""

from __future__ import annotations

from penstock.sizing.errors import RunFailed, ToolMissing


class LocalServerDied(RunFailed):
    """A local server that stands in for a connection exited before it was stopped."""

    code = "RUN-030"
    title = "local server terminated unexpectedly"


class LocalServerNotReady(RunFailed):
    """A local server that stands in for a connection is running but does not respond."""

    code = "RUN-031"
    title = "timed out waiting for a local server"


class LocalServerNotFilled(RunFailed):
    """The spec's initial data for a local server could not be computed, or the server rejected it."""

    code = "RUN-032"
    title = "cannot load data into a local server"


class LocalServerMissing(ToolMissing):
    """The package that provides the server is not installed, or has no binaries for this platform."""

    code = "RUN-033"
    title = "local server not installed"
