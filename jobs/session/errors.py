"""Errors of a session and of its jobs (JOB-...)."""

from __future__ import annotations

from penstock.sizing.errors import RunFailed


class AppArchiveUnusable(RunFailed):
    """The archive with an app of a session is not on S3, or is not the one that was deployed. The session's other jobs run on."""

    code = "JOB-112"
    title = "cannot use the archive of an app"


class SettingOfSession(RunFailed):
    """A job of a session has settings that Spark can have only once for all of its jobs, with other values than the session's."""

    code = "JOB-113"
    title = "settings differ from those of the session"


class SparkEnded(RunFailed):
    """The Spark of a session has ended, and with it all jobs of the session. They resume from their checkpoints."""

    code = "JOB-114"
    title = "the session's Spark has ended"
