"""Errors of savepoints (JOB-..., DEP-...)."""

from __future__ import annotations

from penstock.sizing.errors import DocumentError, RunFailed


class OffsetsNotThere(RunFailed):
    """The topics do not have the offsets at which a start from a savepoint is to read on, or it is not known of which sources they are."""

    code = "JOB-101"
    title = "cannot read on at these offsets"


class SavepointMissing(RunFailed):
    """There is no savepoint of this name, or it is incomplete: it was interrupted, or is being taken or deleted."""

    code = "JOB-095"
    title = "no such savepoint"


class SavepointDamaged(RunFailed):
    """An object of a savepoint is missing or has other content than its manifest says, or the manifest can't be read."""

    code = "JOB-096"
    title = "savepoint damaged"


class SavepointOfNewerRelease(RunFailed):
    """A newer release of Penstock has made the savepoint, in a format that this one does not know."""

    code = "JOB-097"
    title = "savepoint of a newer release"


class SavepointOfAnotherJob(RunFailed):
    """The savepoint is of another job, and nobody has said that this job is to start from it."""

    code = "JOB-098"
    title = "savepoint of another job"


class SavepointNotTaken(RunFailed):
    """The savepoint that ``upgradeMode: savepoint`` asks for can't be taken, and so the job is not upgraded. Nothing of it is touched."""

    code = "JOB-108"
    title = "no savepoint before the upgrade"


class StateNotRestored(RunFailed):
    """A savepoint has the state of a query that the app does not have. Starting without it loses that state."""

    code = "JOB-099"
    title = "the app lacks a query of the savepoint"


class SavepointNameTaken(DocumentError):
    """The job has another savepoint of this name."""

    code = "DEP-030"
    title = "savepoint exists"


class NothingToSave(DocumentError):
    """The job has committed no micro-batch yet, and so there is nothing that a savepoint could have."""

    code = "DEP-031"
    title = "nothing to save"


class CheckpointMoves(RunFailed):
    """The checkpoint does not have what a start from its last micro-batch needs, or the job deletes it faster than it is copied."""

    code = "DEP-032"
    title = "savepoint not complete"


class StateExpired(DocumentError):
    """The checkpoint does not keep the state of that time any more, or the job had committed nothing by then."""

    code = "DEP-034"
    title = "no state of that time"
