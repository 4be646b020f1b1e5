"""Scan of everything that an environment creates, minus the waived findings."""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from penstock.infra.environment import Environment
from penstock.infra.plans import EnvironmentPlans
from penstock.scripts.provisioning.stacks import Stack
from penstock.scripts.security import checkov, offline_plan, parts, waivers
from penstock.scripts.security.errors import ChangedSinceWaived, NotScanned, UnwaivedFinding
from penstock.scripts.security.finding import Finding
from penstock.scripts.security.kept_scans import KeptScans
from penstock.scripts.security.parts import TERRAFORM, Part
from penstock.scripts.security.references import References
from penstock.scripts.security.waivers import Waiver
from penstock.sizing.errors import PenstockError

_INFRA = Path(str(files("penstock.infra")))
WAIVERS = _INFRA / "waivers.toml"
DOCKERFILE = _INFRA / "image" / "Dockerfile"


class Step(Protocol):
    """A running step of a scan."""

    said: str
    watch: Callable[[str], None]


class _Unseen:
    """A step that nobody watches."""

    def __init__(self) -> None:
        self.said = ""
        self.watch: Callable[[str], None] = lambda now: None


# Label and activity of a step.
Show = Callable[[str, str], AbstractContextManager[Step]]
# Given stacks, a folder and what shows the progress: the plan of each stack.
Plan = Callable[[Sequence[Stack], Path, Callable[[str], None]], dict[str, Mapping[str, Any]]]


def _unseen(label: str, doing: str) -> AbstractContextManager[Step]:
    return contextlib.nullcontext(_Unseen())


class Scanned(NamedTuple):
    """Result of the gate.

    Args:
        resources: number of scanned resources or manifests, by part.
        kept: parts whose scan was kept, because they have not changed.
        findings: failed rules that are not waived.
        waived: waived findings, each with its waiver.
        faults: errors of findings, waivers, or the scan itself; empty if the gate is passed.
    """

    resources: dict[str, int]
    kept: tuple[str, ...]
    findings: tuple[Finding, ...]
    waived: tuple[tuple[Finding, Waiver], ...]
    faults: tuple[PenstockError, ...]


class Examined(NamedTuple):
    """Findings of an examination.

    Args:
        findings: all findings, each with the digest of its object.
        kept: parts whose scan was kept.
        seen: number of resources that the scanner has parsed, without those of kept parts.
        expected: number of resources that it should have parsed.
    """

    findings: tuple[Finding, ...]
    kept: tuple[str, ...]
    seen: int
    expected: int


def run(
    environment: Environment,
    planned: EnvironmentPlans,
    folder: Path,
    *,
    waived: Sequence[Waiver],
    today: datetime.date,
    show: Show = _unseen,
    kept: KeptScans | None = None,
    limit_s: float | None = None,
) -> Scanned:
    """Scan an environment.

    Args:
        environment: the environment.
        planned: plans of its jobs.
        folder: empty working folder.
        waived: the waivers.
        today: the current date.
        show: shows a step while it runs.
        kept: the kept scans; the user's by default.
        limit_s: timeout of each call of Terraform, in seconds; None: each call has its own.

    Raises:
        PenstockError: RUN-005 to RUN-009, TOOL-001, TOOL-015, TOOL-016, TOOL-024, SEC-007: the environment could not be scanned.
    """
    with show("synth", "synthesizing the stacks") as step:
        stacks = offline_plan.stacks_offline(environment, planned, folder / "cdktf.out")
        step.said = f"{len(stacks)} stacks"
    references, names = References(stacks), names_of(environment, planned)
    scanned = [parts.of_stack(stack, references, names) for stack in stacks]
    scanned.append(parts.of_image(DOCKERFILE.read_text(encoding="utf-8")))
    examined = examine(scanned, stacks, references, folder, show=show, kept=kept or KeptScans(), limit_s=limit_s)
    objects = [path for part in scanned for path in part.digests]
    return judge(examined, {part.name: part.expected for part in scanned}, waived, today, objects)


def names_of(environment: Environment, planned: EnvironmentPlans) -> dict[str, str]:
    """Names that are not part of digests, with what stands for each: a waiver holds in every environment, and for the next job.

    Args:
        environment: the environment.
        planned: plans of its jobs.
    """
    spec = environment.spec
    own = {environment.name: "ENVIRONMENT", spec.account: "ACCOUNT", spec.region: "REGION"}
    own |= {spec.buckets.checkpoints: "CHECKPOINTS_BUCKET", spec.buckets.output: "OUTPUT_BUCKET"}
    return {**{job.name: "JOB" for job in planned.jobs}, **{session.name: "JOB" for session in planned.sessions}, **own}


def examine(
    scanned: Sequence[Part],
    stacks: Sequence[Stack],
    references: References,
    folder: Path,
    *,
    show: Show = _unseen,
    kept: KeptScans | None = None,
    limit_s: float | None = None,
) -> Examined:
    """Scan parts: all AWS stacks are planned in one run of Terraform, and one run of the scanner reads all parts.

    Args:
        scanned: the parts.
        stacks: the stacks of the parts.
        references: the placeholders.
        folder: working folder.
        show: shows a step while it runs.
        kept: the kept scans; None: every part is scanned.
        limit_s: as of `run`.

    Raises:
        PenstockError: see `run`.
    """
    known = {part.name: found for part in scanned if kept is not None and (found := kept.find(part)) is not None}
    new = [part for part in scanned if part.name not in known]
    plan = partial(offline_plan.plans, limit_s=limit_s)
    scan = _scan(new, stacks, references, folder, show, plan)
    expected = sum(part.expected for part in new)
    of_new = {part.name: tuple(one for one in scan.findings if one.path.split("/")[0] == part.name) for part in new}
    if kept is not None and scan.resource_count == expected:
        for part in new:
            kept.keep(part, of_new[part.name])
    findings = [part.with_digest(one) for part in scanned for one in (*(known | of_new)[part.name], *part.findings)]
    return Examined(tuple(dict.fromkeys(findings)), tuple(known), scan.resource_count, expected)


def _scan(new: Sequence[Part], stacks: Sequence[Stack], references: References, folder: Path, show: Show, plan: Plan) -> checkov.Scan:
    if not new:
        return checkov.Scan((), 0)
    texts = _planned(new, stacks, references, folder, show, plan)
    with show("checkov", f"scanning {', '.join(part.name for part in new)}") as step:
        scan = checkov.scan(texts, folder / "scan", step.watch)
        step.said = f"{scan.resource_count} resources and manifests of {len(new)} parts"
    return scan


def _planned(new: Sequence[Part], stacks: Sequence[Stack], references: References, folder: Path, show: Show, plan: Plan) -> list[Part]:
    to_plan = [stack for stack in stacks if any(part.name == stack.name and part.framework == TERRAFORM for part in new)]
    if not to_plan:
        return list(new)
    with show("plan", f"planning {', '.join(stack.name for stack in to_plan)}") as step:
        plans = plan(to_plan, folder / "plans", step.watch)
        step.said = f"{len(to_plan)} stacks"
    of = {stack.name: stack for stack in to_plan}
    return [parts.planned(part, plans[part.name], of[part.name], references) if part.name in plans else part for part in new]


def judge(
    examined: Examined, resources: Mapping[str, int], waived: Sequence[Waiver], today: datetime.date, objects: Sequence[str] = ()
) -> Scanned:
    """Apply the waivers to the findings and check that nothing was skipped.

    Args:
        examined: the findings.
        resources: number of resources or manifests, by part.
        waived: the waivers.
        today: the current date.
        objects: paths of all resources and manifests.
    """
    findings = examined.findings
    accepted = {finding: waiver for finding in findings for waiver in waived if waiver.covers(finding)}
    left = tuple(finding for finding in findings if finding not in accepted)
    faults: list[PenstockError] = [*_incomplete(examined), *(_open(finding, waived) for finding in left)]
    faults += waivers.faults(waived, findings, [*resources, *objects], today)
    return Scanned(dict(resources), examined.kept, left, tuple(accepted.items()), tuple(faults))


def _incomplete(examined: Examined) -> Iterator[PenstockError]:
    """checkov silently skips files that it cannot parse."""
    if examined.seen != examined.expected:
        need = f"all {examined.expected} synthesized resources and manifests scanned"
        yield NotScanned(path="checkov", given=str(examined.seen), need=need, fix="check which plans and manifests cannot be parsed")


def _open(finding: Finding, waived: Sequence[Waiver]) -> PenstockError:
    if any(waiver.names(finding) for waiver in waived):
        need = f"the object that {finding.rule} was waived for: {finding.says}"
        fix = f'fix it, or review the object as it is now and add "{finding.digest}" to the waiver\'s digests'
        return ChangedSinceWaived(path=finding.path, given=f"{finding.rule}, digest {finding.digest}", need=need, fix=fix)
    fix = f'fix it, or add a waiver with a reason, an expiry date and digests = ["{finding.digest}"] to the file of --waivers'
    return UnwaivedFinding(path=finding.path, given=finding.rule, need=finding.says, fix=fix)
