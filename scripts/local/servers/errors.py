"""Errors of the servers that stand for a job's connections (RUN-030 to RUN-039)."""

from __future__ import annotations

from penstock.sizing.errors import RunFailed, ToolMissing


class LocalServerDied(RunFailed):
    """A server that stands for a connection ended before it was told to."""

    code = "RUN-030"
    title = "a local server ended by itself"


class LocalServerNotReady(RunFailed):
    """A server that stands for a connection runs, but does not answer."""

    code = "RUN-031"
    title = "a local server did not start in time"


class LocalServerNotFilled(RunFailed):
    """What the spec fills a local server with could not be had, or the server refused it."""

    code = "RUN-032"
    title = "a local server could not be filled"


class LocalServerMissing(ToolMissing):
    """The package that brings the server is not installed, or has no server for this machine."""

    code = "RUN-033"
    title = "a local server is not on this machine"
