"""What is wanted of a job beside what runs: each change with what it means, and what it does to plan and cost."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from penstock.infra.environment import Environment
from penstock.infra.image_tag import image_tags
from penstock.infra.plans import EnvironmentPlans, JobPlan
from penstock.jobs.configuration.plan_hash import plan_hash
from penstock.jobs.document import dotted, parse_text
from penstock.jobs.driver.fingerprint import app_hash
from penstock.jobs.savepoints.before_upgrade import savepoint_name
from penstock.jobs.spec import SpecFile, StreamingJob
from penstock.jobs.spec.change_effects import Effect, effect_of
from penstock.jobs.spec.changes import changed_fields
from penstock.jobs.storage.continuation import InitialSavepoint
from penstock.jobs.storage.driver_runs import DriverRunsFile
from penstock.jobs.storage.generation import Generation
from penstock.jobs.storage.job_folder import JobFolder
from penstock.jobs.targets import targets
from penstock.scripts.operations import session_restart
from penstock.scripts.planning.quantities import Quantity, quantities
from penstock.sizing.errors import PenstockError
from penstock.sizing.plan import plan
from penstock.sizing.planned import Plan

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_DISTRIBUTION = "penstock-kit"
_NOT_SET = "not set"
# A driver's pod, as `penstock.jobs.storage.lease_holder.LeaseHolder` says it: the first one of its job's, or its session's, StatefulSet.
_DRIVER = re.compile(r"pod (.+)-driver-0")
# From the least to the most.
ORDER: tuple[Effect, ...] = ("nothing", "restart", "restart with state", "state must be reset", "refused")

State = Literal["not running yet", "unchanged", "goes on with its state", "begins without its state"]


class _Said(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", alias_generator=to_camel, validate_by_name=True)


class Change(_Said):
    """A change of a job.

    Args:
        what: a field of the spec by its path, or ``app``, ``image``, ``plan``, ``penstock`` or ``driver``.
        before: as it runs; a field as it is written.
        now: as it is wanted.
        effect: what it takes.
        why: for people.
    """

    what: str
    before: str
    now: str
    effect: Effect
    why: str


class JobChanges(_Said):
    """A job's changes.

    Args:
        job: its name.
        generation: number of the newest one that has begun, which is what runs.
        state: what a deploy would do with its state, as far as the spec decides it.
        effect: the most that a change takes.
        changes: of the spec, in its order, and of what else a generation is.
        plan: quantities that differ, by today's prices and catalog, for the app as it is here.
        savepoint: that the driver takes before it goes on with the state; None: it takes none.
        notes: what could not be compared.
    """

    job: str
    generation: int | None = None
    state: State
    effect: Effect = "nothing"
    changes: tuple[Change, ...] = ()
    plan: tuple[Quantity, ...] = ()
    savepoint: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def impossible(self) -> bool:
        """Whether a change can't be had with the state that the job is to go on with."""
        return self.state == "goes on with its state" and self.effect in ("state must be reset", "refused")


def job_changes(
    planned: EnvironmentPlans, environment: Environment, s3: S3Client, names: Sequence[str] = (), app_path: Sequence[Path] = ()
) -> list[JobChanges]:
    """The changes of an environment's jobs. Nothing is written.

    Args:
        planned: the jobs as they are wanted.
        environment: of them.
        s3: client.
        names: of the jobs that are meant; all if there are none.
        app_path: folders of the apps besides those of the specs.

    Raises:
        PenstockError: JOB-008, JOB-009, INF-050, INF-053.
    """
    tags = image_tags(environment, [job.name for job in planned.jobs])
    bucket = environment.spec.buckets.checkpoints
    compared = [
        _Compared(job, JobFolder(f"s3a://{bucket}/{job.name}", s3), _ran_in(bucket, job.name, s3), tags[job.name], planned, app_path)
        for job in planned.jobs
    ]
    return [one.changes(environment, compared) for one in compared if not names or one.name in names]


def _ran_in(bucket: str, job: str, s3: S3Client) -> str | None:
    """The job or the session whose driver has run a job last; None: not known, or none in Kubernetes."""
    runs = DriverRunsFile(f"s3a://{bucket}/{job}", s3).read().runs
    found = _DRIVER.fullmatch(runs[-1].driver) if runs else None
    return None if found is None else found[1]


class _Compared:
    """A job as it runs beside what is wanted.

    Args:
        wanted: the job.
        folder: of it.
        ran_in: see `_ran_in`.
        tag: of the image that is wanted.
        planned: all jobs of the environment.
        app_path: folders of the apps.
    """

    def __init__(
        self, wanted: JobPlan, folder: JobFolder, ran_in: str | None, tag: str, planned: EnvironmentPlans, app_path: Sequence[Path]
    ) -> None:
        self._wanted = wanted
        self._folder = folder
        self._ran_in = ran_in
        self._tag = tag
        self._planned = planned
        self._app_path = app_path

    @property
    def name(self) -> str:
        """The job's."""
        return self._wanted.name

    @cached_property
    def _current(self) -> Generation | None:
        return self._folder.current()

    @cached_property
    def _before(self) -> tuple[SpecFile | None, tuple[str, ...]]:
        """The spec as it runs, and what prevents it from being compared."""
        return (None, ()) if self._current is None else self._recorded(self._current)

    def changes(self, environment: Environment, all_: Sequence[_Compared]) -> JobChanges:
        """The changes.

        Args:
            environment: of the job.
            all_: jobs of the environment.
        """
        current = self._current
        if current is None:
            earlier = ("its checkpoint is of a release that recorded no generations",) if self._folder.checkpoints() else ()
            return JobChanges(job=self.name, state="not running yet", notes=earlier)
        before, notes = self._before
        changes = (*(self._of_spec(before) if before else ()), *self._of_the_rest(current), *self._of_driver())
        effect = ORDER[max((ORDER.index(change.effect) for change in changes), default=0)]
        old, unplanned = self._plan_of(before)
        differing = () if old is None else quantities(old, self._wanted.plan)
        state = self._state(effect, current)
        return JobChanges(
            job=self.name,
            generation=current.number,
            state=state,
            effect=effect,
            changes=changes,
            plan=differing,
            savepoint=self._saved(current) if state == "goes on with its state" else None,
            notes=(*notes, *unplanned, *(self._of_session(environment, all_, changes) if changes else ())),
        )

    def runs_in(self, session: str) -> Plan | None:
        """The plan of the job as it runs in a session; None: it does not, or that is not known."""
        return self._plan_of(self._before[0])[0] if self._ran_in == session else None

    def _state(self, effect: Effect, current: Generation) -> State:
        spec = self._wanted.spec.job.spec
        if spec.rewind_to is not None and spec.rewind_to != current.rewound_to:
            return "begins without its state"
        if effect == "nothing":
            return "unchanged"
        return "begins without its state" if spec.upgrade_mode == "stateless" else "goes on with its state"

    def _saved(self, current: Generation) -> str | None:
        spec = self._wanted.spec.job.spec
        initial = InitialSavepoint.of(spec)
        goes_on = initial is None or not initial.counts(current)
        return savepoint_name(current.number) if goes_on and spec.upgrade_mode == "savepoint" else None

    def _recorded(self, current: Generation) -> tuple[SpecFile | None, tuple[str, ...]]:
        recorded = self._folder.recorded_spec(current.number)
        if recorded is None:
            note = f"generation {current.number} is of a release that recorded no spec: its fields can't be compared"
            return None, (note,)
        try:
            document = parse_text(recorded.text, f"generation {current.number} of {self._wanted.name}")
            return SpecFile(path=self._wanted.spec.path, document=document, job=document.parse(StreamingJob)), ()
        except PenstockError as error:
            return None, (f"the spec of generation {current.number} is not one of this release: {error.errors[0].code}",)

    def _of_spec(self, before: SpecFile) -> Iterator[Change]:
        now = self._wanted.spec
        for field in changed_fields(before.job, now.job):
            effect, why = effect_of(field, before.job, now.job)
            old, new = (file.document.given(field.path) or _NOT_SET for file in (before, now))
            yield Change(what=dotted(field.path), before=old, now=new, effect=effect, why=why)

    def _of_the_rest(self, current: Generation) -> Iterator[Change]:
        ran = current.fingerprint
        app = app_hash(self._wanted.spec, self._app_path)
        if app != ran.app:
            why = "its operators must keep what the checkpoint has: penstock upgrade check"
            yield Change(what="app", before=ran.app or "installed", now=app or "installed", effect="restart with state", why=why)
        tag = None if ran.image is None else ran.image.rpartition(":")[2]
        if tag is not None and tag != self._tag:
            yield Change(what="image", before=tag, now=self._tag, effect="restart", why="pods of another image")
        own = plan_hash(self._wanted.plan)
        if own != ran.plan:
            yield Change(what="plan", before=ran.plan, now=own, effect="restart", why="other pods, or other settings of Spark")
        penstock = _penstock()
        if current.versions.penstock is not None and penstock is not None and penstock != current.versions.penstock:
            why = "if the image is built with it"
            yield Change(what="penstock", before=current.versions.penstock, now=penstock, effect="restart", why=why)

    def _of_driver(self) -> Iterator[Change]:
        """A move into a session, or out of one."""
        session = self._planned.session_of(self.name)
        now = self.name if session is None else session.name
        if self._ran_in is not None and self._ran_in != now:
            before, wanted = ("a driver of its own" if one == self.name else f"session {one}" for one in (self._ran_in, now))
            why = "the driver that has it stops, and the other one goes on with its checkpoint"
            yield Change(what="driver", before=before, now=wanted, effect="restart", why=why)

    def _of_session(self, environment: Environment, all_: Sequence[_Compared], changes: Sequence[Change]) -> tuple[str, ...]:
        session = self._planned.session_of(self.name)
        if session is None:
            return ()
        running = {one.name: plan for one in all_ if (plan := one.runs_in(session.name)) is not None}
        new_image = any(change.what in ("image", "penstock") for change in changes)
        return session_restart.said(self._planned, environment, self.name, running, new_image=new_image)

    def _plan_of(self, before: SpecFile | None) -> tuple[Plan | None, tuple[str, ...]]:
        """The plan of the spec as it runs, and what prevents it."""
        if before is None:
            return None, ()
        try:
            return plan(targets(before, self._app_path), self._planned.cluster), ()
        except PenstockError as error:
            return None, (f"the spec that runs can't be planned here: {error.errors[0].code}",)


def _penstock() -> str | None:
    try:
        return version(_DISTRIBUTION)
    except PackageNotFoundError:
        return None
