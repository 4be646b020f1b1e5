"""Errors of ``penstock profile`` (PROF-..., and DEP-... of a deployment)."""

from __future__ import annotations

from penstock.sizing.errors import DocumentError, RunFailed, ToolMissing


class NotProfiled(DocumentError):
    """The job can't be measured under a backlog: it reads something other than topics."""

    code = "PROF-004"
    title = "job can't be profiled"


class UnusableInput(DocumentError):
    """The input has no records, or the job quarantines all of them."""

    code = "PROF-005"
    title = "no usable records to profile with"


class TooFewMicroBatches(RunFailed):
    """Too few micro-batches were measured for a rate."""

    code = "PROF-006"
    title = "too few micro-batches to measure"


class CalibrationMissing(DocumentError):
    """A profile without the calibration of the machine where it was measured can't be compared with another machine."""

    code = "PROF-007"
    title = "profile can't be scaled"


class EventsNotFound(RunFailed):
    """The log group of a job in its environment does not exist, or has no events of its driver."""

    code = "DEP-061"
    title = "no events of the job's driver"


class JobNotRunning(RunFailed):
    """The job does not run in the environment as it is here, so there is nothing to measure of it."""

    code = "DEP-062"
    title = "job not running in the environment"


class ProfileNotWritten(ToolMissing):
    """The file of the profile cannot be written."""

    code = "PROF-008"
    title = "cannot write the profile"
