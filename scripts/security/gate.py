"""Scan of everything that an environment creates, minus the waived findings."""

from __future__ import annotations

import datetime
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from penstock.infra.environment import Environment
from penstock.infra.plans import EnvironmentPlans
from penstock.scripts.provisioning.stacks import Stack
from penstock.scripts.security import checkov, offline_plan, waivers
from penstock.scripts.security.chart_manifests import manifests
from penstock.scripts.security.errors import NotScanned, UnwaivedFinding
from penstock.scripts.security.finding import Finding
from penstock.scripts.security.waivers import Waiver
from penstock.sizing.errors import PenstockError

_INFRA = Path(str(files("penstock.infra")))
WAIVERS = _INFRA / "waivers.toml"
DOCKERFILE = _INFRA / "image" / "Dockerfile"
# Folders of a scan, and the frameworks that checkov applies to them.
_PLANS, _MANIFESTS, _IMAGE = "plans", "manifests", "image"
_FRAMEWORKS = {_PLANS: "terraform_plan", _MANIFESTS: "kubernetes", _IMAGE: "dockerfile"}

_WORKLOADS = {"StatefulSet", "Deployment", "DaemonSet", "Job", "CronJob"}

Progress = Callable[[str], None]


class Scanned(NamedTuple):
    """Result of the gate.

    Args:
        resources: number of scanned resources or manifests, by part.
        findings: failed rules that are not waived.
        waived: waived findings, each with its waiver.
        faults: errors of findings, waivers, or the scan itself; empty if the gate is passed.
    """

    resources: dict[str, int]
    findings: tuple[Finding, ...]
    waived: tuple[tuple[Finding, Waiver], ...]
    faults: tuple[PenstockError, ...]


def run(
    environment: Environment,
    planned: EnvironmentPlans,
    folder: Path,
    *,
    waived: Sequence[Waiver],
    today: datetime.date,
    progress: Progress = lambda said: None,
) -> Scanned:
    """Scan an environment.

    Args:
        environment: the environment.
        planned: plans of its jobs.
        folder: empty working folder.
        waived: the waivers.
        today: the current date.
        progress: called with the current step.

    Raises:
        PenstockError: RUN-005 to RUN-009, TOOL-001, TOOL-024, SEC-007: the environment could not be scanned.
    """
    progress("synthesizing the stacks")
    stacks = offline_plan.stacks_offline(environment, planned, folder / "cdktf.out")
    for name in _FRAMEWORKS:
        (folder / name).mkdir()
    expected = {stack.name: _prepared(stack, stacks, folder, progress) for stack in stacks}
    shutil.copy(DOCKERFILE, folder / _IMAGE)
    scans = {name: checkov.scan(folder / name, [framework], progress) for name, framework in _FRAMEWORKS.items()}
    return judge(scans, expected, waived, today)


def judge(scans: dict[str, checkov.Scan], expected: dict[str, int], waived: Sequence[Waiver], today: datetime.date) -> Scanned:
    """Apply the waivers to the scans and check that nothing was skipped.

    Args:
        scans: scans of the gate's folders.
        expected: number of resources or manifests, by part.
        waived: the waivers.
        today: the current date.
    """
    findings = [finding for scan in scans.values() for finding in scan.findings]
    accepted = {finding: waiver for finding in findings for waiver in waived if waiver.covers(finding)}
    left = tuple(finding for finding in findings if finding not in accepted)
    faults: list[PenstockError] = [*_unseen(scans, expected), *(_unwaived(finding) for finding in left)]
    faults += waivers.faults(waived, findings, [*expected, "Dockerfile"], today)
    return Scanned(expected, left, tuple(accepted.items()), tuple(faults))


def _prepared(stack: Stack, stacks: Sequence[Stack], folder: Path, progress: Progress) -> int:
    """Write the files to scan of a stack and return the number of its resources or manifests."""
    if stack.on_kubernetes:
        documents = _with_templates(manifests(stack, stacks))
        text = yaml.safe_dump_all(documents, sort_keys=False)
        (folder / _MANIFESTS / f"{stack.name}.yaml").write_text(text, encoding="utf-8")
        # checkov counts a workload and its pod separately.
        return len(documents) + sum(document.get("kind") in _WORKLOADS for document in documents)
    plan = offline_plan.plan(stack, progress)
    (folder / _PLANS / f"{stack.name}.json").write_text(json.dumps(plan), encoding="utf-8")
    return len(stack.resources())


def _with_templates(documents: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The manifests, and the pod templates in their config maps, from which Spark creates executors."""
    return [*documents, *(template for document in documents for template in _templates(document))]


def _templates(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if document.get("kind") != "ConfigMap":
        return
    for text in document.get("data", {}).values():
        template = yaml.safe_load(text) if "kind: Pod" in text else None
        if isinstance(template, dict) and template.get("kind") == "Pod":
            metadata = {"name": f"{document['metadata']['name']}-template", **template.get("metadata", {})}
            yield {**template, "metadata": {**metadata, "namespace": document["metadata"].get("namespace", "default")}}


def _unseen(scans: dict[str, checkov.Scan], expected: dict[str, int]) -> Iterator[PenstockError]:
    """checkov silently skips files that it cannot parse."""
    resources, seen = sum(expected.values()), sum(scans[name].resource_count for name in (_PLANS, _MANIFESTS))
    if resources != seen:
        need = f"all {resources} synthesized resources and manifests scanned"
        yield NotScanned(path="checkov", given=str(seen), need=need, fix="check which plans and manifests cannot be parsed")


def _unwaived(finding: Finding) -> UnwaivedFinding:
    fix = "fix it, or add a waiver with a reason and an expiry date to the file of --waivers"
    return UnwaivedFinding(path=finding.path, given=finding.rule, need=finding.says, fix=fix)
