"""The status of a job, from its folder on S3: the lease, the runs of its drivers, its generations and its last micro-batches.

It is read where the drivers write it, so it needs neither the cluster nor the brokers, and it is the same for a job that runs anywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from penstock.jobs.driver.restart_policy import why_stopped
from penstock.jobs.spec import SpecFile
from penstock.jobs.storage.checkpoint import BEFORE_THE_FIRST, FINISHED, Checkpoint
from penstock.jobs.storage.driver_runs import DriverRun, DriverRuns, DriverRunsFile
from penstock.jobs.storage.errors import CheckpointDamaged
from penstock.jobs.storage.generation import Generation
from penstock.jobs.storage.job_folder import JobFolder
from penstock.jobs.storage.lease import LeaseFile, LeaseState, StoredLease
from penstock.jobs.storage.lease_holder import LeaseHolder
from penstock.jobs.watermark import END_MS
from penstock.scripts.operations.backlog import OVER_BATCHES, Backlog, backlog_of

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

# Ours: as alarms count restarts.
_RECENT = timedelta(hours=1)

State = Literal["not started", "running", "stopping", "stopped", "finished", "restarting", "failed", "lost", "unreadable"]


class _Said(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", alias_generator=to_camel, validate_by_name=True)


class QueryStatus(_Said):
    """A query of a job at its last committed micro-batch.

    Args:
        name: empty for the first.
        micro_batch: its number; -1 before the first.
        at: when it began.
        watermark: of the next micro-batch, the least of all sources; None without event time, and at the end of a bounded run.
        records_in: records that it has read.
        total_records_in: records read since the checkpoint began.
        backlog: what it has not read; None before the first micro-batch.
        state_bytes: size of its state after an earlier micro-batch, see `BatchRecord`; None if the record does not say.
    """

    name: str
    micro_batch: int
    at: datetime | None
    watermark: datetime | None
    records_in: int
    total_records_in: int
    backlog: Backlog | None
    state_bytes: int | None


class FailureReason(_Said):
    """Failures of a job's drivers with the same code.

    Args:
        code: of the error; empty if the drivers could not say one.
        what: the last of them in one line.
        times: how many.
        last: when the last of them was.
    """

    code: str
    what: str
    times: int
    last: datetime


class JobStatus(_Said):
    """A job.

    Args:
        job: its name.
        state: what its driver does. ``restarting``: it has failed and starts again; ``failed``: it does not as it is (JOB-092); ``lost``:
            it is gone, or cut off from S3, and has not said how.
        cause: of a state that is not as it should be.
        since: when the state began.
        idle: whether all queries of a driver that runs had read everything after their last micro-batches, as the lease says.
        driver: the pod or process that runs, or ran last.
        generation: number of the newest one that has begun.
        checkpoint: where it has its checkpoint.
        rewound_to: the time from which its checkpoint reads the topics, if it began with a rewind to a time.
        queries: at their last micro-batches.
        starts: of drivers within the last hour.
        failures: of drivers within the last hour.
        reasons: of these failures, the last one first.
        runs: of drivers, the last one first.
        planned_state_bytes: of the plan; None if it was not asked for, or does not say, as without a load.
    """

    job: str
    state: State
    cause: str | None = None
    since: datetime | None = None
    idle: bool = False
    driver: str | None = None
    generation: int | None = None
    checkpoint: str | None = None
    rewound_to: datetime | None = None
    queries: tuple[QueryStatus, ...] = ()
    starts: int = 0
    failures: int = 0
    reasons: tuple[FailureReason, ...] = ()
    runs: tuple[DriverRun, ...] = ()
    planned_state_bytes: int | None = None


def status_of(spec: SpecFile, bucket: str, s3: S3Client, now: datetime) -> JobStatus:
    """The status of a job.

    Args:
        spec: the job's.
        bucket: of the checkpoints.
        s3: client.
        now: the time.

    Raises:
        BucketUnreachable: JOB-009.
    """
    name = spec.job.metadata.name
    folder = JobFolder(f"s3a://{bucket}/{name}", s3)
    try:
        return _status(spec, folder, s3, now)
    except CheckpointDamaged as error:
        return JobStatus(job=name, state="unreadable", cause=str(error))


def _status(spec: SpecFile, folder: JobFolder, s3: S3Client, now: datetime) -> JobStatus:
    generation, recorded = folder.current(), DriverRunsFile(folder.uri, s3).read()
    runs = recorded.runs
    this = LeaseHolder.this_process()
    lease = LeaseFile(folder.uri, this, s3=s3).read()
    checkpoint = folder.checkpoint(generation.checkpoint) if generation else None
    held = lease is not None and not lease.record.holder.seen_dead_by(this)
    state, cause, since = _state(spec, lease if held else None, recorded, checkpoint)
    recent = [run for run in runs if run.started > now - _RECENT]
    reasons = _reasons(run for run in runs if run.ended is not None and run.ended > now - _RECENT)
    return JobStatus(
        job=spec.job.metadata.name,
        state=state,
        cause=cause,
        since=since,
        idle=state == "running" and lease is not None and lease.record.idle,
        driver=runs[-1].driver if runs else None,
        generation=generation.number if generation else None,
        checkpoint=checkpoint.uri if checkpoint else None,
        rewound_to=_rewound_to(generation),
        queries=tuple(_queries(generation, checkpoint)) if generation and checkpoint else (),
        starts=len(recent),
        failures=sum(reason.times for reason in reasons),
        reasons=reasons,
        runs=tuple(reversed(runs)),
    )


def _state(
    spec: SpecFile, lease: StoredLease | None, recorded: DriverRuns, checkpoint: Checkpoint | None
) -> tuple[State, str | None, datetime | None]:
    """The state, its cause, and since when.

    Args:
        spec: the job's.
        lease: None if nobody holds it, or a process that has ended.
        recorded: runs of drivers.
        checkpoint: of the newest generation; None if none has begun.
    """
    last = recorded.runs[-1] if recorded.runs else None
    if lease is not None and lease.record.state != LeaseState.RELEASED and lease.age_s < lease.record.duration_s:
        return ("stopping" if lease.record.state == LeaseState.STOPPING else "running"), None, lease.record.since
    if last is None:
        return "not started", None, None
    if last.ended is None:
        return "lost", f"{last.driver} has not renewed the job's lease and recorded no end", lease.renewed if lease else last.started
    if last.failure is None:
        finished = checkpoint is not None and checkpoint.get(FINISHED) is not None
        return ("finished" if finished else "stopped"), None, last.ended
    why = why_stopped(recorded.counted(last.fingerprint), spec.job.spec.restart)
    at = f" at {last.failure.where}" if last.failure.where else ""
    cause = f"{last.failure.code}{at}: {last.failure.what}".lstrip(": ")
    return ("failed", f"{cause}; {why}", last.ended) if why else ("restarting", cause, last.ended)


def _reasons(ended: Iterable[DriverRun]) -> tuple[FailureReason, ...]:
    """Of runs in their order."""
    found: dict[str, FailureReason] = {}
    for run in ended:
        if run.failure is not None and run.ended is not None:
            before = found.pop(run.failure.code, None)
            times = before.times + 1 if before else 1
            found[run.failure.code] = FailureReason(code=run.failure.code, what=run.failure.what, times=times, last=run.ended)
    return tuple(reversed(found.values()))


def _queries(generation: Generation, checkpoint: Checkpoint) -> Iterator[QueryStatus]:
    for name in generation.queries or [""]:
        own = checkpoint.of_query(name)
        record = own.last_record()
        earlier = own.kept_record(max(0, record.batch - OVER_BATCHES)) if record.batch > 0 else None
        begun, watermark_ms = record != BEFORE_THE_FIRST, record.watermarks.current_ms
        yield QueryStatus(
            name=name,
            micro_batch=record.batch,
            at=_time(record.time_ms) if begun else None,
            watermark=None if watermark_ms == END_MS else _time(watermark_ms),
            records_in=sum(record.rows_in.values()),
            total_records_in=sum(record.total_rows_in.values()),
            backlog=backlog_of(record, earlier) if begun else None,
            state_bytes=record.state_bytes,
        )


def _rewound_to(generation: Generation | None) -> datetime | None:
    to = generation.rewind.to if generation and generation.rewind else None
    return _time(to) if isinstance(to, int) else None


def _time(time_ms: int | None) -> datetime | None:
    return None if time_ms is None else datetime.fromtimestamp(time_ms / 1000, UTC)
