"""A deployed job is rewound, a rewind undone, or a savepoint started from: requested in the job's folder, and obeyed by the next driver.

The request is written before the driver is stopped. Whoever starts the job from then on, Kubernetes or an operator, starts it rewound; so
an interruption at any point leaves nothing half done.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from penstock.jobs.driver.errors import RewindImpossible, SourcesDiffer, StateDiffers
from penstock.jobs.driver.rewind import written
from penstock.jobs.kafka.errors import OffsetGone, RecordsGone
from penstock.jobs.savepoints.errors import (
    OffsetsNotThere,
    SavepointDamaged,
    SavepointMissing,
    SavepointOfAnotherJob,
    SavepointOfNewerRelease,
    StateNotRestored,
)
from penstock.jobs.storage.driver_runs import Failure
from penstock.jobs.storage.errors import CheckpointDamaged
from penstock.jobs.storage.generation import Generation, Rewound
from penstock.jobs.storage.rewind_request import RewindRequest
from penstock.scripts.operations.job_records import JobRecords
from penstock.scripts.operations.running_job import READY_LIMIT_S, RunningJob
from penstock.scripts.progress import Steps
from penstock.scripts.provisioning.draining import LOOK_EVERY_S, POD_MARGIN_S
from penstock.scripts.provisioning.errors import DriverNotReady, JobChanged, RewindRefused

# A driver of a release that knows only times takes any other start for a damaged request. An undo and a savepoint go on with a checkpoint,
# which the app may no longer fit, or whose next records Kafka no longer has.
_REFUSALS = {
    error.code
    for error in (
        CheckpointDamaged,
        OffsetsNotThere,
        OffsetGone,
        RecordsGone,
        RewindImpossible,
        SavepointDamaged,
        SavepointMissing,
        SavepointOfAnotherJob,
        SavepointOfNewerRelease,
        SourcesDiffer,
        StateDiffers,
        StateNotRestored,
    )
}


@dataclass(frozen=True)
class Rewinding:
    """Carries out a request.

    Args:
        running: the job in its cluster.
        records: in the job's folder.
        steps: receives a line per finished step.
        limit_s: for the driver to start, in seconds.
        pod_margin_s: seconds that its pods may take to end in addition to their own grace period.
    """

    running: RunningJob
    records: JobRecords
    steps: Steps
    limit_s: float = READY_LIMIT_S
    pod_margin_s: float = POD_MARGIN_S

    def carry_out(self, request: RewindRequest) -> Generation:
        """Request it, stop the driver at the end of its micro-batch, start it, and wait until it reads from there.

        Returns:
            The generation that has begun with it.

        Raises:
            JobNotDeployed: DEP-017.
            JobChanged: DEP-020.
            RewindRefused: DEP-021; the request is withdrawn.
            PenstockError: DEP-007, DEP-010, DEP-011, DEP-018, JOB-008, JOB-009, JOB-082.
        """
        self.running.refuse_missing()
        self._write(request)
        # A --by of the same length is another time by then.
        same = "the same command" if request.to is None else f"penstock rewind --to {written(request.to)}"
        with self._unfinished(f"the next driver obeys the request, and none may run until penstock resume, or {same}"):
            self._restart()
        return self._awaited(request)

    def go_on(self, request: RewindRequest) -> Generation:
        """Wait for a driver that has obeyed a request, of a command that was interrupted. Returns and raises as `carry_out`."""
        self.running.refuse_missing()
        self.running.resume()
        return self._awaited(request)

    def _awaited(self, request: RewindRequest) -> Generation:
        doing = f"waiting for {self.running.name} to read its sources"
        with self._unfinished("the driver is started, and obeys the request: see penstock status"), self.steps.at("start", doing) as step:
            begun = self._obeyed(request)
            step.said = f"{self.running.name} runs as generation {begun.number}, with checkpoint {begun.checkpoint}"
        return begun

    def withdraw(self, request: RewindRequest) -> None:
        """Withdraw a request that no driver has obeyed yet, and start the job if it is stopped.

        Raises:
            JobNotDeployed: DEP-017.
            PenstockError: DEP-007, DEP-010, JOB-008, JOB-009, JOB-082.
        """
        self.running.refuse_missing()
        self.records.requests.withdraw(request)
        started = self.running.resume()
        self.steps.line("request", f"withdrawn; {self.running.name} {'is started' if started else 'runs'} as before")

    def _restart(self) -> None:
        with self.steps.at("stop", f"waiting for {self.running.name} to finish its micro-batch, and for its pods to end") as step:
            stopped = self.running.stop(self.pod_margin_s)
            step.said = f"{self.running.name} is stopped" if stopped else f"{self.running.name} was stopped already"
        self.running.resume()

    def _write(self, request: RewindRequest) -> None:
        known, newest = self.records.requests.read(), self.records.newest(self.running.name)
        if request.same_as(known) and newest.number == request.after:
            assert known is not None
            self.steps.line("request", f"goes on with that of {known.asked:%Y-%m-%d %H:%M:%S} UTC")
            return
        if newest.number != request.after or not self.records.requests.replace(known, request):
            given = f"generation {newest.number}" if newest.number != request.after else "another rewind is requested"
            raise JobChanged(path=self._path, given=given, need=f"generation {request.after}, of which this was shown", fix="retry")
        self.steps.line("request", f"written to {self.records.requests.uri}/penstock/rewind.json")

    @contextmanager
    def _unfinished(self, how: str) -> Iterator[None]:
        """Says what state an interruption or a failure leaves."""
        try:
            yield
        except (JobChanged, RewindRefused):
            # They say it themselves.
            raise
        except BaseException:
            self.steps.line("unfinished", how)
            raise

    def _obeyed(self, request: RewindRequest) -> Generation:
        until_s = time.monotonic() + self.limit_s
        while True:
            # In this order: a driver that is ready has recorded its generation before.
            ready, newest = self.running.reads, self.records.newest(self.running.name)
            self._refuse_another(newest, request)
            if ready and newest.number > request.after:
                return newest
            if ready:
                self._withdraw(request, "the driver started without it", "deploy an image with this release of Penstock")
            failure = self._last_failure()
            if failure is not None and failure.code in _REFUSALS:
                self._withdraw(request, f"{failure.code}: {failure.what}", _fix(request))
            if time.monotonic() > until_s:
                raise self._not_ready(failure)
            time.sleep(LOOK_EVERY_S)

    @property
    def _path(self) -> str:
        return f"job {self.running.name}"

    def _refuse_another(self, newest: Generation, request: RewindRequest) -> None:
        if newest.number > request.after and not self._fulfils(newest, request):
            given = f"generation {newest.number} has begun with something else"
            raise JobChanged(path=self._path, given=given, need="the one that was requested", fix="look at it: penstock status")

    def _last_failure(self) -> Failure | None:
        """Of the drivers that have started since the job was."""
        runs = self.records.runs.read()
        last = next((run for run in reversed(runs.runs) if run.token > runs.resumed_after), None)
        return last.failure if last is not None else None

    def _not_ready(self, failure: Failure | None) -> DriverNotReady:
        given = f"{failure.code}: {failure.what}".lstrip(": ") if failure is not None else "no failure is recorded"
        fix = "check penstock status and penstock doctor; the driver is started on, and penstock stop ends that"
        return DriverNotReady(path=self._path, given=given, need=f"a query that reads within {self.limit_s:g} s", fix=fix)

    def _fulfils(self, begun: Generation, request: RewindRequest) -> bool:
        if request.start_from is not None:
            return begun.savepoint == request.start_from and begun.rewind == Rewound(left=request.after, offsets=request.offsets)
        if request.back_to is not None:
            return begun.checkpoint == self.records.folder.generation(request.back_to).checkpoint
        return begun.rewind is not None and (begun.rewind.to, begun.rewind.left) == (request.to, request.after)

    def _withdraw(self, request: RewindRequest, given: str, fix: str) -> None:
        """Ends a request that a driver has not obeyed, and lets the job go on as it was."""
        self.records.requests.withdraw(request)
        self.running.resume()
        need = "a driver that obeys the request; it is withdrawn, and the job goes on from its checkpoint"
        raise RewindRefused(path=self._path, given=given, need=need, fix=fix)


def _fix(request: RewindRequest) -> str:
    """What to do instead of a request that a driver refuses."""
    if request.start_from is not None:
        return "another savepoint, or the app that it was taken of"
    if request.back_to is not None:
        return (
            "deploy the app and the sources that the checkpoint is of, and undo then; or penstock rewind --to a time that the topics have"
        )
    return "begin somewhere else, or deploy an image with this release"
