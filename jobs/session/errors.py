"""Errors of a session (JOB-...)."""

from __future__ import annotations

from penstock.sizing.errors import RunFailed


class SparkEnded(RunFailed):
    """The Spark of a session has ended, and with it all jobs of the session. They resume from their checkpoints."""

    code = "JOB-114"
    title = "the session's Spark has ended"
