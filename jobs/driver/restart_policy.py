"""Whether a driver that has failed starts again.

A failure of the infrastructure mends itself or is mended outside of the job, and the driver goes on however long it takes. What is wrong
with the app or its data stays wrong until the job changes, and each start costs the nodes of its executors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import takewhile

from penstock.jobs.driver.errors import (
    BoundedRunOver,
    NotRepeatable,
    OperatorsDiffer,
    QueryFailed,
    RewindImpossible,
    SettingOfSession,
    SocketHasNoPast,
    SourcesDiffer,
    StateDiffers,
    StateNotRepartitioned,
    StateNotRepeatable,
)
from penstock.jobs.errors import BadDeclaration, DatabaseUnreachable, SecretUnusable
from penstock.jobs.kafka.errors import (
    BrokersUnreachable,
    KafkaCredentialsRefused,
    NoKafkaCredentials,
    NotCommitted,
    OffsetGone,
    RecordsGone,
    TopicAccessDenied,
    TopicNotFound,
)
from penstock.jobs.savepoints.errors import (
    OffsetsNotThere,
    SavepointDamaged,
    SavepointMissing,
    SavepointNotTaken,
    SavepointOfAnotherJob,
    SavepointOfNewerRelease,
    StateNotRestored,
)
from penstock.jobs.sinks.errors import ClientPropertiesRefused, ReplayDiffers, RowsRefused, SinkFunctionFailed
from penstock.jobs.spec.errors import ConnectionOfAnotherKind, UnknownConnection
from penstock.jobs.spec.resources import Restart
from penstock.jobs.sql.errors import SqlRefused
from penstock.jobs.storage.driver_runs import Answer, DriverRun, Failure
from penstock.jobs.storage.errors import (
    AppArchiveUnusable,
    BucketUnreachable,
    CheckpointDamaged,
    CheckpointHeld,
    CheckpointMissing,
    ConcurrentWriter,
    ConditionalWriteFailed,
    LeaseLost,
)
from penstock.jobs.stream.errors import AppFailed, QuarantineLimitReached
from penstock.sizing.errors import PenstockError

# Ours: two restarts are enough to tell an accident from what comes again, such as an outside call that fails in the app's code.
_SAME_FAILURES = 3
# The app or the spec contradicts itself, or the data is what the spec says that the job must not go on with.
_NEVER: tuple[type[PenstockError], ...] = (
    BadDeclaration,
    ClientPropertiesRefused,
    NotRepeatable,
    OffsetsNotThere,
    OperatorsDiffer,
    QuarantineLimitReached,
    RecordsGone,
    RewindImpossible,
    SavepointOfAnotherJob,
    SavepointOfNewerRelease,
    SettingOfSession,
    SocketHasNoPast,
    SourcesDiffer,
    SqlRefused,
    StateDiffers,
    StateNotRepartitioned,
    StateNotRepeatable,
    StateNotRestored,
)
# The app's own code, or rows that a sink can't write.
_UNLESS_REPEATED: tuple[type[PenstockError], ...] = (
    AppFailed,
    ReplayDiffers,
    RowsRefused,
    SinkFunctionFailed,
)
# An outside system, another driver, or an object on S3: mended there, without a change of the job. Most are found before Spark starts.
_ALWAYS: tuple[type[PenstockError], ...] = (
    AppArchiveUnusable,
    BoundedRunOver,
    BrokersUnreachable,
    BucketUnreachable,
    CheckpointDamaged,
    CheckpointHeld,
    CheckpointMissing,
    ConcurrentWriter,
    ConditionalWriteFailed,
    ConnectionOfAnotherKind,
    DatabaseUnreachable,
    KafkaCredentialsRefused,
    LeaseLost,
    NoKafkaCredentials,
    NotCommitted,
    OffsetGone,
    SavepointDamaged,
    SavepointMissing,
    SavepointNotTaken,
    SecretUnusable,
    TopicAccessDenied,
    TopicNotFound,
    UnknownConnection,
)


def failure_of(error: PenstockError) -> Failure:
    """A driver's error as the end of its run."""
    first = error.errors[0]
    return Failure(code=first.code, what=_in_one_line(first), where=str(first.at) if first.at else None, answer=answer_to(first))


def _in_one_line(error: PenstockError) -> str:
    headline = f"{error.title} ({error.path})" if error.path else error.title
    rest = "; ".join(part for part in (error.given, f"need {error.need}" if error.need else "") if part)
    return f"{headline}: {rest}" if rest else headline


def answer_to(error: PenstockError) -> Answer:
    """Whether a driver starts again after an error."""
    if isinstance(error, _NEVER):
        return "never"
    if isinstance(error, _ALWAYS):
        return "always"
    # A failure within the team's code; any other one has no cause that is known, such as an executor that can't be started.
    if isinstance(error, _UNLESS_REPEATED) or (isinstance(error, QueryFailed) and error.at is not None):
        return "unless-repeated"
    return "limited"


def unrecorded_end(run: DriverRun, pod_uid: str | None) -> Failure:
    """The failure of a run that recorded none.

    Args:
        run: that has not ended.
        pod_uid: of the driver that starts now; see `DriverRun`.
    """
    if run.pod_uid is not None and run.pod_uid == pod_uid:
        return Failure(code="", what="killed before it could record why, for example by the kernel for its memory", answer="limited")
    # Without either, somebody has started it again, and knows why it ended.
    gone = "its pod has gone, with its node or by eviction, or its supervisor"
    what = "its process ended before it could record why" if run.pod_uid is None else gone
    return Failure(code="", what=what, answer="always")


def why_stopped(runs: Sequence[DriverRun], limit: Restart) -> str | None:
    """Why a job is not started again as it is; None if it is.

    Args:
        runs: the last ones of what the job is now, each with an end; the last one last.
        limit: the spec's.
    """
    last = runs[-1].failure if runs else None
    if last is None or last.answer == "always":
        return None
    if last.answer == "never":
        return "it fails again as long as the job does not change"
    if last.answer == "unless-repeated" and _repeated(runs, last) >= _SAME_FAILURES:
        return f"it failed {_SAME_FAILURES} times in a row, with no micro-batch in between"
    counted = sum(1 for _ in _counted(runs, limit))
    if counted > limit.failures:
        return f"{counted} failures within {limit.within / 1000:g} s; spec.restart allows {limit.failures}"
    return None


def _repeated(runs: Sequence[DriverRun], last: Failure) -> int:
    """How often the last failure has come in a row, with no micro-batch committed since it came first."""
    same = list(takewhile(lambda run: run.failure is not None and _key(run.failure) == _key(last), reversed(runs)))
    fruitless = len(list(takewhile(lambda run: not run.micro_batches, same)))
    return min(fruitless + 1, len(same))


def _key(failure: Failure) -> tuple[str, str | None]:
    # Not the text: it may have numbers of tasks and addresses.
    return failure.code, failure.where


def _counted(runs: Sequence[DriverRun], limit: Restart) -> Iterator[DriverRun]:
    """The failures that count, within the spec's time before the last one."""
    until = runs[-1].ended
    assert until is not None
    since = until - timedelta(milliseconds=limit.within)
    for run in runs:
        if run.failure is not None and run.failure.answer != "always" and run.ended is not None and run.ended > since:
            yield run
