"""Errors of a driver and its queries (JOB-...)."""

from __future__ import annotations

from penstock.sizing.errors import RunFailed


class OperatorsDiffer(RunFailed):
    """The operators that keep state in the query are not those that the app or its spec declares, by which state is sized."""

    code = "JOB-011"
    title = "stateful operators differ from the declared ones"


class QueryFailed(RunFailed):
    """The streaming query terminated with an exception."""

    code = "JOB-005"
    title = "query failed"


class NotRepeatable(RunFailed):
    """Rows of an exactly-once sink depend on a non-deterministic expression, so a replay of a micro-batch could produce different rows."""

    code = "JOB-062"
    title = "exactly-once sink requires deterministic rows"


class SocketHasNoPast(RunFailed):
    """A job with a socket source found a checkpoint; a socket cannot replay what its server has already sent."""

    code = "JOB-021"
    title = "a job with a socket source cannot resume from a checkpoint"


class BoundedRunOver(RunFailed):
    """The checkpoint is that of a bounded run whose input has ended: everything is closed, and later rows have no place in it."""

    code = "JOB-022"
    title = "the bounded run has ended"


class EndUnreachable(RunFailed):
    """A bounded run cannot go on to the ends that were decided when it began: a source, a topic or its last records are gone."""

    code = "JOB-023"
    title = "the end of a bounded run cannot be reached"


class StateNotRepeatable(RunFailed):
    """State on the heap is computed from a non-deterministic expression. Its files are named by version only, so a replay, or a second
    driver, would overwrite them with other content.
    """

    code = "JOB-085"
    title = "state on the heap requires deterministic rows"


class NoProgress(RunFailed):
    """A query showed no progress for `progressTimeout`: a task, an outside call or a source hangs. The job resumes from its checkpoint."""

    code = "JOB-090"
    title = "micro-batch hangs"


class DiskFull(RunFailed):
    """A disk that the job writes to is full: of a pod's volume, or of its node. Nothing is lost: the job resumes from its checkpoint."""

    code = "JOB-091"
    title = "no space left on a disk"


class JobStopped(RunFailed):
    """The job has failed in a way that comes again, or too often: it is not started again as it is. Nothing is lost."""

    code = "JOB-092"
    title = "job stopped after failures"


class RewindImpossible(RunFailed):
    """The topics no longer have all records since the time to rewind to, the time is yet to come, or the job reads something else too."""

    code = "JOB-093"
    title = "cannot rewind to this time"


class StateDiffers(RunFailed):
    """The state in the job's checkpoint is not what its operators keep: Spark would refuse it, or take one value for another."""

    code = "JOB-094"
    title = "the state does not fit the app"


class SourcesDiffer(RunFailed):
    """The offsets in the job's checkpoint are of other sources than its query reads, or of the same in another order."""

    code = "JOB-105"
    title = "the checkpoint has the offsets of other sources"


class StateNotRepartitioned(RunFailed):
    """The state of a savepoint can't be repartitioned to the parallelism of the spec. Nothing of the job is touched."""

    code = "JOB-109"
    title = "state can't be repartitioned"


class UpgradeNotChecked(RunFailed):
    """The check before an upgrade has failed before it could decide. The job's driver of before runs on."""

    code = "JOB-100"
    title = "cannot check the upgrade"


class SettingOfSession(RunFailed):
    """A job of a session has settings that Spark can have only once for all of its jobs, with other values than the session's."""

    code = "JOB-113"
    title = "settings differ from those of the session"
