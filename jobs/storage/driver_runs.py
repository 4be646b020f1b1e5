"""The runs of a job's drivers: each from its start to its end, with the failure that it ended with. In the job's folder on S3."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from penstock.jobs.storage.generation import Fingerprint
from penstock.jobs.storage.objects import Objects

# Ours: more than a spec may allow to fail; a run's record has a few hundred bytes.
KEPT_RUNS = 100
_NAME = "runs.json"

# What comes after a failure: the driver starts again however often it takes, or a limited number of times, or that and only if the failure
# is not the same again, or not as the job is.
Answer = Literal["always", "limited", "unless-repeated", "never"]


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, alias_generator=to_camel, validate_by_name=True)


class Failure(_Record):
    """Why a run ended.

    Args:
        code: of the error; empty if the driver could not say one.
        what: the error in one line.
        where: file and line of the team's code; None if it came through none.
        answer: whether the driver starts again.
    """

    code: str
    what: str
    where: str | None = None
    answer: Answer


class DriverRun(_Record):
    """A driver, from when it holds the job's lease to its end.

    Args:
        token: its fencing token, which no other run has.
        driver: the pod or the process, for people.
        pod_uid: uid of its pod, or of the supervisor that has started it on a machine; None if nothing starts it again by itself.
        fingerprint: what it runs.
        started: by the driver's clock.
        reading: likewise, when its queries first read, see `penstock.jobs.driver.readiness`; None before, and of earlier releases.
        ended: likewise; None while it runs, and of one that could not say so.
        micro_batches: that it has committed.
        failure: None while it runs, and after a graceful stop.
    """

    token: int = Field(ge=1)
    driver: str
    pod_uid: str | None
    fingerprint: Fingerprint
    started: datetime
    reading: datetime | None = None
    ended: datetime | None = None
    micro_batches: int = Field(default=0, ge=0)
    failure: Failure | None = None


class DriverRuns(_Record):
    """The last runs of a job.

    Args:
        runs: in the order of their starts.
        resumed_after: token of the last run when somebody resumed the job: failures up to there do not count any more.
    """

    runs: tuple[DriverRun, ...] = ()
    resumed_after: int = Field(default=0, ge=0)

    def counted(self, fingerprint: Fingerprint) -> list[DriverRun]:
        """The runs that say whether the job is started again: of what it is now, since it was resumed, those that have ended."""
        return [run for run in self.runs if run.fingerprint == fingerprint and run.token > self.resumed_after and run.ended is not None]

    def resumed(self) -> DriverRuns:
        """With the failures so far forgiven."""
        return self.model_copy(update={"resumed_after": max((run.token for run in self.runs), default=0)})

    def begun(self, run: DriverRun) -> DriverRuns:
        """With another run."""
        return self.model_copy(update={"runs": (*self.runs, run)[-KEPT_RUNS:]})

    def changed(self, run: DriverRun) -> DriverRuns:
        """With the run that has this token as it is now, unless it has expired."""
        return self.model_copy(update={"runs": tuple(run if one.token == run.token else one for one in self.runs)})


class DriverRunsFile(Objects):
    """Where the runs of a job are recorded: ``penstock/runs.json`` in the job's folder.

    Args:
        uri: the job's folder, ``s3a://bucket/folder``.
    """

    def read(self) -> DriverRuns:
        """The runs; none of a job that has not run, or whose record can't be read: it decides about restarts, and loses no data.

        Raises:
            BucketUnreachable: JOB-009.
        """
        return self._stored()[0]

    def change(self, change: Callable[[DriverRuns], DriverRuns]) -> DriverRuns:
        """Changes the runs, atomically.

        Args:
            change: called again if another driver changes them meanwhile.

        Raises:
            ConditionalWriteFailed: JOB-082.
            BucketUnreachable: JOB-009.
        """
        while True:
            runs, etag = self._stored()
            changed = change(runs)
            text = changed.model_dump_json(by_alias=True, indent=1)
            if self._written(text, etag):
                return changed

    def _stored(self) -> tuple[DriverRuns, str | None]:
        stored = self._with_etag(self._key(_NAME))
        if stored is None:
            return DriverRuns(), None
        try:
            return DriverRuns.model_validate_json(stored[0]), stored[1]
        except ValidationError:
            return DriverRuns(), stored[1]

    def _written(self, text: str, etag: str | None) -> bool:
        if etag is None:
            return self.put_once(_NAME, text)
        return self._conditionally(lambda writer: writer.replace(self._key(_NAME), text.encode(), etag)) is not None
