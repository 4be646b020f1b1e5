"""Errors of sessions."""

from __future__ import annotations

from penstock.sizing.errors import Infeasible


class ExecutorsDiffer(Infeasible):
    """The jobs of a session run on the same executors, and ask for different ones."""

    code = "SIZ-060"
    title = "the jobs of a session ask for different executors"


class SessionOverheadTooSmall(Infeasible):
    """An executor of a session runs the Python workers of all its jobs, and its overhead does not hold them."""

    code = "SIZ-061"
    title = "the executors' overhead does not hold the Python workers of all jobs of the session"


class SessionDriverTooSmall(Infeasible):
    """The driver that an environment gives a session is smaller than those of its jobs together."""

    code = "SIZ-062"
    title = "the session's driver is smaller than its jobs need"


class SettingsDiffer(Infeasible):
    """A setting of Spark that a driver and its executors have once differs in the jobs of a session."""

    code = "SIZ-063"
    title = "the jobs of a session differ in a setting that they share"
