"""Whether a changed job does its work: a micro-batch that its new generation has committed, or no records to read.

Helm waits for the same, but no longer than `penstock.jobs.driver.readiness` does: a first micro-batch of hours, and what fails after it, is
seen here alone.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from penstock.infra.image_tag import VARIABLE
from penstock.jobs.spec import SpecFile
from penstock.jobs.spec.app_module import sql_beside
from penstock.jobs.storage.checkpoint import FINISHED
from penstock.jobs.storage.driver_runs import DriverRunsFile
from penstock.jobs.storage.generation import Generation
from penstock.jobs.storage.job_folder import JobFolder
from penstock.scripts.operations.job_changes import JobChanges
from penstock.scripts.operations.job_status import JobStatus, status_of
from penstock.scripts.provisioning.errors import NoEvidence
from penstock.sizing.errors import PenstockError

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

# Ours: the driver reads by then, and a micro-batch takes less than its trigger, which is seconds to minutes.
LIMIT_S = 600.0
LOOK_EVERY_S = 2.0
# Code, and the tool: neither is in the cluster before an image is built, which has another tag. A move to another driver begins no
# generation.
_BEGINS_NONE = {"app", "penstock", "driver"}
_TEXT = """python3 -c 'import json, sys; sys.stdout.write(json.load(sys.stdin)["text"])'"""

Outcome = Literal["committed", "idle", "finished", "failed", "stopped", "no commit"]


class Evidence(BaseModel):
    """What has become of a changed job.

    Args:
        job: its name.
        outcome: ``idle``: its driver runs, and there is nothing to read; ``finished``: it has ended by itself, with nothing to read;
            ``failed``: it is not started again as it is; ``no commit``: nothing was committed in time.
        generation: number of the newest one.
        micro_batch: the last committed one of its first query that has one; None for none of this generation.
        cause: why there is none.
        go_back: commands that deploy the job as it was.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", alias_generator=to_camel, validate_by_name=True)

    job: str
    outcome: Outcome
    generation: int | None = None
    micro_batch: int | None = None
    cause: str | None = None
    go_back: tuple[str, ...] = ()

    @property
    def well(self) -> bool:
        """Whether the job does its work."""
        return self.outcome in ("committed", "idle", "finished")

    def error(self) -> NoEvidence:
        """What is wrong with a job that does not."""
        need = "a micro-batch that its new generation has committed"
        fix = "\n       ".join(("check penstock status and penstock logs; to go back:" if self.go_back else "", *self.go_back))
        return NoEvidence(path=f"job {self.job}", given=self.cause or self.outcome, need=need, fix=fix)


@dataclass(frozen=True)
class Awaited:
    """A job that is about to change, as it is before.

    Args:
        spec: that is wanted.
        before: the generation that runs.
        token: of the last run of its drivers.
        tag: of the image that runs, if it is to change; None: it stays.
        respelled: whether the spec changes.
        recorded: whether that of the generation before is known.
        sql: name of its app if that is an SQL file beside the spec, and changes.
    """

    spec: SpecFile
    before: Generation
    token: int
    tag: str | None
    respelled: bool
    recorded: bool
    sql: str | None = None

    @property
    def name(self) -> str:
        """The job's name."""
        return self.spec.job.metadata.name


def awaited(
    changes: Sequence[JobChanges], specs: Sequence[SpecFile], bucket: str, s3: S3Client, archived: Collection[str] = ()
) -> list[Awaited]:
    """The jobs of which another generation begins when they are deployed. To be called before that.

    Args:
        changes: of the jobs that run.
        specs: of the jobs.
        bucket: of the checkpoints.
        s3: client.
        archived: names of those whose app is deployed without an image: a session has it in an archive.

    Raises:
        PenstockError: JOB-008, JOB-009.
    """
    by_name = {spec.job.metadata.name: spec for spec in specs}
    found = []
    for job in changes:
        spec = by_name[job.job]
        # Deployed with the spec, so that it needs no other image.
        sql = next(iter(sql_beside(spec.job.spec.app, spec.path.parent)), None)
        left_out = _BEGINS_NONE - ({"app"} if sql or job.job in archived else set())
        deployed = {change.what: change for change in job.changes if change.effect != "nothing" and change.what not in left_out}
        uri = f"s3a://{bucket}/{job.job}"
        if job.generation is None or not deployed or _is_over(JobFolder(uri, s3), job.generation):
            continue
        runs = DriverRunsFile(uri, s3).read().runs
        image = deployed.get("image")
        respelled = any(what.startswith("spec.") or what == "plan" for what in deployed)
        folder = JobFolder(uri, s3)
        recorded = folder.recorded_spec(job.generation) is not None
        token, tag = runs[-1].token if runs else 0, image.before if image else None
        rewritten = sql if "app" in deployed else None
        found.append(Awaited(spec, folder.generation(job.generation), token, tag, respelled, recorded, rewritten))
    return found


def _is_over(folder: JobFolder, generation: int) -> bool:
    """Whether a bounded run has finished, whose next driver can't but refuse to go on (JOB-022)."""
    return folder.checkpoint(folder.generation(generation).checkpoint).get(FINISHED) is not None


def failures(jobs: Sequence[Awaited], bucket: str, s3: S3Client) -> dict[str, str]:
    """Why the drivers of changed jobs have failed since, by the job: the reason why Helm rolls their releases back.

    Args:
        jobs: as they were before.
        bucket: of the checkpoints.
        s3: client.

    Raises:
        BucketUnreachable: JOB-009.
    """
    found: dict[str, str] = {}
    for job in jobs:
        for run in DriverRunsFile(f"s3a://{bucket}/{job.name}", s3).read().runs:
            if run.token > job.token and run.failure is not None and run.fingerprint != job.before.fingerprint:
                at = f" at {run.failure.where}" if run.failure.where else ""
                found[job.name] = f"{run.failure.code}{at}: {run.failure.what}".lstrip(": ")
    return found


class Watch:
    """Waits for the evidence of jobs.

    Args:
        environment: as the command line names it.
        bucket: of the checkpoints.
        s3: client.
        limit_s: until nothing more is expected, in seconds, for all of them together.
    """

    def __init__(self, environment: str, bucket: str, s3: S3Client, limit_s: float = LIMIT_S) -> None:
        self._environment = environment
        self._bucket = bucket
        self._s3 = s3
        self._limit_s = limit_s

    def wait(self, jobs: Sequence[Awaited], watch: Callable[[str], None]) -> list[Evidence]:
        """Wait until each job has evidence, or is known to get none.

        Args:
            jobs: that have changed.
            watch: called with what is waited for.
        """
        until_s = time.monotonic() + self._limit_s
        found: dict[str, Evidence] = {}
        while True:
            left = [job for job in jobs if job.name not in found]
            over = time.monotonic() > until_s
            for job in left:
                evidence = self._look(job, watch, over=over)
                if evidence is not None:
                    found[job.name] = evidence
            if len(found) == len(jobs):
                return [found[job.name] for job in jobs]
            time.sleep(LOOK_EVERY_S)

    def _look(self, job: Awaited, watch: Callable[[str], None], *, over: bool) -> Evidence | None:
        """What is known of a job; None while it may still commit. A bucket that is out of reach for a while says nothing."""
        try:
            status = status_of(job.spec, self._bucket, self._s3, datetime.now(UTC))
            watch(f"{job.name} {status.state}, generation {status.generation}, waiting for a micro-batch")
            return self._of(job, status, over=over)
        except PenstockError as error:
            return self._without(job, None, "no commit", str(error)) if over else None

    def _of(self, job: Awaited, status: JobStatus, *, over: bool) -> Evidence | None:
        """What is known of a job; None while it may still commit."""
        begun = status.generation is not None and status.generation > job.before.number
        batch = self._committed(job) if begun else None
        if batch is not None:
            return Evidence(job=job.name, outcome="committed", generation=status.generation, micro_batch=batch)
        # The lease was read after the generation, so it is that of the new driver, which fences the old one before it begins.
        if begun and status.idle:
            return Evidence(job=job.name, outcome="idle", generation=status.generation)
        # Before that it is a driver of the generation before that has ended.
        started = any(run.token > job.token for run in status.runs)
        # A driver with this trigger ends by itself, and commits nothing if there is nothing to read.
        ends = job.spec.job.spec.trigger == "availableNow" and started and status.state == "stopped"
        if begun and (status.state == "finished" or ends):
            return Evidence(job=job.name, outcome="finished", generation=status.generation)
        if started and status.state == "failed":
            return self._without(job, status.generation, "failed", status.cause or "its driver has failed")
        if begun and started and status.state == "stopped":
            return self._without(job, status.generation, "stopped", "it was stopped before its first micro-batch")
        return self._without(job, status.generation, "no commit", self._why(status, begun=begun)) if over else None

    def _why(self, status: JobStatus, *, begun: bool) -> str:
        within = f"within {self._limit_s:g} s"
        if status.cause:
            return f"{within} it has committed nothing: {status.state}, {status.cause}"
        if not begun:
            return f"{within} no generation has begun: its driver is {status.state}"
        return f"{within} it has committed nothing; its driver is {status.state}"

    def _committed(self, job: Awaited) -> int | None:
        """The last micro-batch that a query has committed since the newest generation began; None if none has."""
        folder = JobFolder(f"s3a://{self._bucket}/{job.name}", self._s3)
        current = folder.current()
        if current is None:
            return None
        checkpoint = folder.checkpoint(current.checkpoint)
        before = current.parent.batches if current.parent is not None and current.checkpoint == job.before.checkpoint else {}
        batches = ((checkpoint.of_query(name).last_record().batch, before.get(name, -1)) for name in current.queries or [""])
        return next((batch for batch, known in batches if batch > known), None)

    def _without(self, job: Awaited, generation: int | None, outcome: Outcome, cause: str) -> Evidence:
        return Evidence(job=job.name, outcome=outcome, generation=generation, cause=cause, go_back=tuple(self._back(job)))

    def _back(self, job: Awaited) -> Iterator[str]:
        """Commands that deploy the job as it was: its spec as recorded, its app if that is deployed with it, and its image."""
        recorded = f"s3://{self._bucket}/{job.name}/penstock/generations/{job.before.number}.spec.json"
        if job.respelled and not job.recorded:
            yield f"# {job.spec.path} as it was, which an earlier release has not recorded"
        elif job.respelled:
            yield f"aws s3 cp {recorded} - | {_TEXT} > {shlex.quote(str(job.spec.path))}"
        if job.sql is not None:
            yield f"# {job.spec.path.parent / job.sql} as it was, which is not recorded"
        tag = f"{VARIABLE}={job.name}={job.tag} " if job.tag is not None else ""
        yield f"{tag}penstock deploy {shlex.quote(self._environment)} jobs-charts"
