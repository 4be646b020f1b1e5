"""The runs of a job's drivers, for the driver that runs now: whether it may start, and how it ended.

Kubernetes starts a container again after 10 s, 20 s and so on up to 5 minutes, without a limit, and so does ``penstock run`` with a
process. The limit is held here: a job whose failures come again ends at its start, before Spark and its executors.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from penstock.jobs.driver.errors import JobStopped
from penstock.jobs.driver.micro_batch import Emit
from penstock.jobs.driver.restart_policy import failure_of, unrecorded_end, why_stopped
from penstock.jobs.spec.resources import Restart
from penstock.jobs.storage.driver_runs import DriverRun, DriverRuns, DriverRunsFile, Failure
from penstock.jobs.storage.errors import BucketUnreachable, ConditionalWriteFailed
from penstock.jobs.storage.generation import Fingerprint
from penstock.jobs.storage.lease_holder import LeaseHolder
from penstock.sizing.errors import PenstockError

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


def _now() -> datetime:
    return datetime.now(UTC)


class Restarts:
    """Decides at its start whether a driver runs, and records its end.

    Args:
        folder: the job's, ``s3a://bucket/folder``.
        limit: the spec's.
        clock: the time in UTC.
        s3: client; by default a job's own.
    """

    def __init__(self, folder: str, limit: Restart, clock: Callable[[], datetime] = _now, s3: S3Client | None = None) -> None:
        self._file = DriverRunsFile(folder, s3)
        self._limit = limit
        self._clock = clock
        self._run: DriverRun | None = None
        self._committed = 0
        # A thread that finds out that a query hangs, and the driver itself, may both want to say how the run ended.
        self._first = threading.Lock()

    def counting(self, emit: Emit) -> Emit:
        """Reports events, and counts the micro-batches that they tell of."""

        def counted(event: str, detail: Mapping[str, object]) -> None:
            self._committed += event == "committed"
            emit(event, detail)

        return counted

    def begin(self, token: int, holder: LeaseHolder, fingerprint: Fingerprint) -> None:
        """Records the start of a run, unless the job is stopped.

        Args:
            token: of the lease that this driver holds.
            holder: this driver.
            fingerprint: what it runs: failures of anything else do not count.

        Raises:
            JobStopped: JOB-092.
            ConditionalWriteFailed: JOB-082.
            BucketUnreachable: JOB-009.
        """
        run = DriverRun(token=token, driver=str(holder), pod_uid=holder.pod_uid, fingerprint=fingerprint, started=self._clock())
        runs = self._file.change(lambda known: self._begun(known, run))
        if runs.runs[-1] != run:
            own = runs.counted(fingerprint)
            raise _stopped(own[-1], why_stopped(own, self._limit) or "")
        self._run = run

    def _begun(self, runs: DriverRuns, run: DriverRun) -> DriverRuns:
        """With this run, unless the job is stopped. The ends of earlier ones are recorded in any case: the time of a failure stays."""
        known = self._all_ended(runs, run)
        return known if why_stopped(known.counted(run.fingerprint), self._limit) else known.begun(run)

    def _all_ended(self, runs: DriverRuns, run: DriverRun) -> DriverRuns:
        """With the ends of those that could not say how: this driver holds the lease that they had."""
        for one in runs.runs:
            if one.ended is None:
                said = {"ended": run.started, "failure": unrecorded_end(one, run.pod_uid)}
                runs = runs.changed(one.model_copy(update=said))
        return runs

    def reading(self) -> None:
        """Records that the queries of the run read. A bucket that is out of reach is a warning."""
        with self._first:
            if self._run is None:
                return
            self._run = run = self._run.model_copy(update={"reading": self._clock()})
        self._record(run)

    def ended(self, error: Exception | None) -> None:
        """Records the end of the run; only the first call counts. A bucket that is out of reach is a warning.

        Args:
            error: None after a graceful stop.
        """
        with self._first:
            run, self._run = self._run, None
        if run is None:
            return
        failure = None if error is None else _failure(error)
        run = run.model_copy(update={"ended": self._clock(), "micro_batches": self._committed, "failure": failure})
        runs = self._record(run)
        if runs is None:
            return
        why = why_stopped(runs.counted(run.fingerprint), self._limit)
        if failure is not None and why is not None:
            print(f"WARN the job is not started again as it is: {why}", file=sys.stderr, flush=True)

    def _record(self, run: DriverRun) -> DriverRuns | None:
        try:
            # One whose end is recorded stays as it ended: whoever records that it reads may be late.
            return self._file.change(lambda runs: runs if run.ended is None and _has_ended(runs, run) else runs.changed(run))
        except (BucketUnreachable, ConditionalWriteFailed) as unrecorded:
            print(f"WARN the {'start' if run.ended is None else 'end'} of the run is not recorded: {unrecorded}", file=sys.stderr)
            return None


def _has_ended(runs: DriverRuns, run: DriverRun) -> bool:
    return any(one.token == run.token and one.ended is not None for one in runs.runs)


def _failure(error: Exception) -> Failure:
    if isinstance(error, PenstockError):
        return failure_of(error)
    return Failure(code="", what=f"{type(error).__name__}: {error}".splitlines()[0], answer="limited")


def _stopped(last: DriverRun, why: str) -> JobStopped:
    failure = last.failure
    assert failure is not None and last.ended is not None
    at = f" at {failure.where}" if failure.where else ""
    return JobStopped(
        path="the job",
        given=f"stopped since {last.ended:%Y-%m-%d %H:%M:%S} UTC by {failure.code or 'an end without an error'}{at}: {failure.what}",
        need=f"a job that has changed: {why}",
        fix="correct it and deploy; to try again as it is: penstock resume, or penstock run --resume outside of Kubernetes",
    )
