"""Compares the jobs of an environment before a change and after it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from penstock.jobs.document import dotted
from penstock.jobs.driver.checkpoint_changes import checkpoint_changes
from penstock.jobs.driver.fingerprint import app_hash
from penstock.jobs.spec import SpecFile
from penstock.jobs.spec.change_effects import Effect, effect_of
from penstock.jobs.spec.changes import changed_fields
from penstock.scripts.operations.job_changes import ORDER, Change
from penstock.scripts.planning.planned_jobs import PlannedJob
from penstock.scripts.planning.quantities import NONE, Quantity, measured, quantities
from penstock.scripts.render.money import usd
from penstock.scripts.review.base_tree import BaseTree
from penstock.scripts.review.environment_fields import NOT_SET, environment_fields
from penstock.scripts.review.job_review import JobReview, Kind, Outcome, Review
from penstock.scripts.review.queries import Analyzed, App
from penstock.scripts.review.side import Side
from penstock.sizing.cost.usd import UsdRange, total
from penstock.sizing.errors import PenstockError
from penstock.sizing.lint.finding import Finding

_REFUSED: tuple[Effect, ...] = ("state must be reset", "refused")
# Analyzed versions of a job: before, after.
Versions = tuple[Analyzed, Analyzed]


def to_analyze(before: Side, now: Side) -> dict[str, tuple[App, App]]:
    """Job -> both of its versions, of those whose spec or app differs.

    Args:
        before: the jobs before the change.
        now: the jobs after it.
    """
    both = [(before.jobs[name].spec, job.spec) for name, job in now.jobs.items() if name in before.jobs]
    return {
        new.job.metadata.name: (App("before", old, before.folders), App("after", new, now.folders))
        for old, new in both
        if changed_fields(old.job, new.job) or app_hash(old, before.folders) != app_hash(new, now.folders)
    }


def reviewed(tree: BaseTree, before: Side, now: Side, versions: Mapping[str, Versions], notes: Iterable[str] = ()) -> Review:
    """What a change means.

    Args:
        tree: the files before it.
        before: the jobs before it.
        now: the jobs after it.
        versions: of the jobs of `to_analyze`; without those that were not analyzed.
        notes: what could not be compared.
    """
    assert now.environment is not None
    names = [*now.jobs, *(name for name in before.jobs if name not in now.jobs)]
    known, new = (_of_no_job(side) for side in (before, now))
    return Review(
        environment=now.environment.name,
        base=tree.commit,
        fields=tuple(environment_fields(before, now, tree)),
        jobs=tuple(_Compared(name, before, now, versions.get(name)).review() for name in names),
        findings=tuple(_new(new, known)),
        violations=tuple(_line(violation.error()) for violation in now.violations),
        cost=_cost(before, now),
        notes=(*notes, *(f"{fault.code} at the base: {fault.path or fault.title}" for fault in before.faults)),
    )


class _Compared:
    """A job before and after the change.

    Args:
        name: of the job.
        before: all jobs before the change.
        now: all jobs after it.
        versions: what Spark finds in the app before and after; None if it was not asked.
    """

    def __init__(self, name: str, before: Side, now: Side, versions: Versions | None) -> None:
        self._name = name
        self._before, self._now = before.jobs.get(name), now.jobs.get(name)
        self._sides = before, now
        self._versions = versions

    def review(self) -> JobReview:
        changes, (differences, notes) = tuple(self._changes()), self._state()
        plans = [job.plan if job is not None else None for job in (self._before, self._now)]
        effect = ORDER[max((ORDER.index(change.effect) for change in changes), default=0)]
        effect = "state must be reset" if differences else effect
        plan, topics = quantities(*plans), tuple(self._topics())
        kind = self._kind(differs=bool(changes or plan or topics))
        findings = tuple(_new(*(_of(job, side) for job, side in zip((self._now, self._before), reversed(self._sides), strict=True))))
        refused = (*self._impossible(changes, differences, effect), *self._wrong(findings))
        return JobReview(
            job=self._name,
            kind=kind,
            outcome="refused" if refused else self._outcome(kind, effect),
            needs=measured(next(planned for planned in reversed(plans) if planned is not None)),
            changes=changes,
            plan=plan,
            topics=topics,
            findings=findings,
            refused=refused,
            notes=notes,
        )

    def _kind(self, *, differs: bool) -> Kind:
        if self._before is None:
            return "added"
        if self._now is None:
            return "gone"
        return "changed" if differs else "unchanged"

    def _outcome(self, kind: Kind, effect: Effect) -> Outcome:
        if kind in ("added", "gone"):
            return "starts" if kind == "added" else "ends"
        if effect == "nothing":
            # Other pods are another plan, with which its driver starts again.
            return "unchanged" if kind == "unchanged" else "goes on with its state"
        return "begins without its state" if self._stateless else "goes on with its state"

    @property
    def _stateless(self) -> bool:
        return self._now is not None and self._now.spec.job.spec.upgrade_mode == "stateless"

    def _changes(self) -> Iterator[Change]:
        if self._before is None or self._now is None:
            return
        old, new = self._before.spec, self._now.spec
        for field in changed_fields(old.job, new.job):
            effect, why = effect_of(field, old.job, new.job)
            was, is_ = (file.document.given(field.path) or NOT_SET for file in (old, new))
            yield Change(what=dotted(field.path), before=was, now=is_, effect=effect, why=why)
        yield from self._of_the_app(old, new)

    def _of_the_app(self, old: SpecFile, new: SpecFile) -> Iterator[Change]:
        was, is_ = (app_hash(spec, side.folders) for spec, side in zip((old, new), self._sides, strict=True))
        if was != is_:
            why = "its operators keep what the checkpoint has" if self._versions else "its operators were not compared"
            yield Change(what="app", before=was or "installed", now=is_ or "installed", effect="restart with state", why=why)

    def _state(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """How the state of the queries differs, and why that is not known."""
        if self._versions is None:
            return (), ()
        before, now = self._versions
        if before.queries is None:
            return (), tuple(f"the app at the base fails its check, so its operators are not compared: {one.code}" for one in before.faults)
        if now.queries is None:
            return (), ()
        return tuple(
            f"{one.code} {one.path}: {one.given}" for fault in checkpoint_changes(before.queries, now.queries) for one in fault.errors
        ), ()

    def _topics(self) -> Iterator[Quantity]:
        before, now = (dict(job.plan.kafka.topics) if job is not None else {} for job in (self._before, self._now))
        for name in sorted({*before, *now}):
            was, is_ = (str(topics.get(name, NONE)) for topics in (before, now))
            if was != is_:
                yield Quantity(what=f"partitions of {name}", before=was, now=is_)

    def _impossible(self, changes: Iterable[Change], differences: Iterable[str], effect: Effect) -> Iterator[str]:
        """What can't be had with the state that the job is to go on with."""
        if effect in _REFUSED and not self._stateless:
            yield from (f"{change.what}: {change.effect}: {change.why}" for change in changes if change.effect in _REFUSED)
            yield from (
                f"the app's state does not fit: {difference}; upgradeMode: stateless begins without it" for difference in differences
            )

    def _wrong(self, findings: Iterable[Finding]) -> Iterator[str]:
        """What is wrong with the job whatever it was before."""
        if self._now is not None:
            yield from (_line(violation.error()) for violation in self._now.plan.violations)
        if self._versions is not None:
            yield from (_line(fault) for fault in self._versions[1].faults)
        yield from (f"{finding.rule} {finding.path}: {finding.title}" for finding in findings if finding.severity == "error")


def _line(error: PenstockError) -> str:
    return f"{error.code} {error.path or error.title}: {error.given or error.need}"


def _of(job: PlannedJob | None, side: Side) -> list[Finding]:
    """Lint's findings in the spec of a job."""
    return [finding for finding in side.findings if job is not None and finding.at and Path(finding.at.file) == job.spec.path]


def _of_no_job(side: Side) -> list[Finding]:
    specs = {job.spec.path for job in side.jobs.values()}
    return [finding for finding in side.findings if not finding.at or Path(finding.at.file) not in specs]


def _new(now: Iterable[Finding], before: Iterable[Finding]) -> Iterator[Finding]:
    """Findings that were not there before, wherever their lines are."""
    known = {(one.rule, one.path, one.given) for one in before}
    return (one for one in now if (one.rule, one.path, one.given) not in known)


def _cost(before: Side, now: Side) -> Quantity | None:
    was, is_ = (_sum(side) for side in (before, now))
    if was is None and is_ is None:
        return None
    return Quantity(what="USD a month", before=usd(was) if was else NONE, now=usd(is_) if is_ else NONE)


def _sum(side: Side) -> UsdRange | None:
    bills = [job.plan.cost.total.usd_per_month for job in side.jobs.values() if job.plan.cost is not None]
    return total(bills) if bills else None
