"""Guards the gate: each planted fault must be found, at its object and by its rules.

The environment is synthesized once. All faults that the scanner must find are planned and scanned in one run, each as a stack of its own.
"""

from __future__ import annotations

import dataclasses
import datetime
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from penstock.infra.deployable import deployable_plans
from penstock.infra.environment_file import load
from penstock.scripts.errors import ProviderNotFound, TerraformTimeout
from penstock.scripts.provisioning.stacks import Stack
from penstock.scripts.security import gate, offline_plan, parts, waivers
from penstock.scripts.security.errors import ChangedSinceWaived
from penstock.scripts.security.finding import Finding
from penstock.scripts.security.kept_scans import KeptScans
from penstock.scripts.security.references import References
from tests.security.bad_stack import BAD_POD_RULES, BAD_RULES, bad_pod, bad_stack
from tests.security.faults import DOCKERFILES, MORE, NINE
from tests.security.planting import Fault, planted

pytestmark = [pytest.mark.emulated, pytest.mark.timeout(600)]
FAULTS = (*NINE, *MORE)


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Stack]:
    """The shipped production environment's stacks."""
    environment = load("production")
    folder = tmp_path_factory.mktemp("shipped")
    return {stack.name: stack for stack in offline_plan.stacks_offline(environment, deployable_plans(environment), folder / "cdktf.out")}


@pytest.fixture(scope="module")
def found(shipped: dict[str, Stack], tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, tuple[Finding, ...]]:
    """Findings by fault. A user's own settings of the scanner skip some rules, which must have no effect."""
    if shutil.which("terraform") is None:
        pytest.skip("terraform is not in PATH")
    home = tmp_path_factory.mktemp("home")
    (home / ".checkov.yaml").write_text("skip-check: [CKV_AWS_33, CKV_K8S_16]\n", encoding="utf-8")
    references = References(shipped.values())
    stacks = [planted(fault, shipped, references) for fault in FAULTS]
    of_stacks = [parts.of_stack(stack, references, {}) for stack in stacks]
    scanned = [part for part, fault in zip(of_stacks, FAULTS, strict=True) if fault.scanned]
    stacks.append(bad_stack(tmp_path_factory.mktemp("bad") / "bad", {"aws": shipped["registry"].content()["provider"]["aws"]}))
    bad = parts.of_stack(stacks[-1], references, {})
    images = [parts.of_image(text, name) for name, (text, _) in DOCKERFILES.items()]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        patch.setenv("CKV_SKIP_CHECK", "CKV_AWS_60,CKV_DOCKER_8")
        # Terraform's provider may be below the home folder, and so may the user's cache.
        patch.setenv("PENSTOCK_CACHE", str(KeptScans().folder.parent))
        examined = _examined([*scanned, bad, bad_pod(), *images], stacks, references, tmp_path_factory.mktemp("guard"))
    assert examined.seen == examined.expected
    own = [finding for part in of_stacks for finding in part.findings]
    everything = {*examined.findings, *own}
    names = (*(fault.name for fault in FAULTS), *DOCKERFILES, bad.name, bad_pod().name)
    return {name: tuple(one for one in everything if one.path.split("/")[0] == name) for name in names}


def _examined(scanned: list[parts.Part], stacks: list[Stack], references: References, folder: Path) -> gate.Examined:
    try:
        return gate.examine(scanned, stacks, references, folder)
    except ProviderNotFound as error:
        pytest.skip(error.render())


def test_the_limit_of_terraforms_calls_is_the_callers(shipped: dict[str, Stack], tmp_path: Path) -> None:
    """A busy machine takes longer than any limit that is fixed."""
    stacks = [shipped["registry"]]
    references = References(stacks)
    with pytest.raises(TerraformTimeout) as raised:
        gate.examine([parts.of_stack(stacks[0], references, {})], stacks, references, tmp_path, limit_s=0.01)
    assert raised.value.need == "completion within 0.01 s"


def _rules(findings: tuple[Finding, ...], path: str) -> set[str]:
    return {finding.rule for finding in findings if finding.path == path or finding.path.startswith((f"{path}.", f"{path}["))}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_planted_fault_is_found_at_its_object(fault: Fault, found: Mapping[str, tuple[Finding, ...]]) -> None:
    assert _rules(found[fault.name], f"{fault.name}/{fault.path}") >= set(fault.rules), found[fault.name]


def test_a_bad_stack_fails_with_exactly_the_scanners_rules_that_it_breaks(found: Mapping[str, tuple[Finding, ...]]) -> None:
    rules: dict[str, set[str]] = {}
    for finding in found["bad"]:
        if finding.rule.startswith("CKV"):
            rules.setdefault(finding.path.removeprefix("bad/"), set()).add(finding.rule)
    assert rules == BAD_RULES


def test_a_bad_pod_fails_with_the_rules_that_it_breaks(found: Mapping[str, tuple[Finding, ...]]) -> None:
    assert _rules(found["bad-pod"], "bad-pod/Pod.default.bad") >= BAD_POD_RULES


@pytest.mark.parametrize("name", DOCKERFILES)
def test_an_image_that_runs_as_root_is_found(name: str, found: Mapping[str, tuple[Finding, ...]]) -> None:
    assert DOCKERFILES[name][1] in {finding.rule for finding in found[name]}


def test_a_suppression_in_the_dockerfile_is_a_finding_with_its_line(found: Mapping[str, tuple[Finding, ...]]) -> None:
    (suppressed,) = (finding for finding in found["root-in-the-image"] if finding.rule == "PEN_SKIP_1")
    line = DOCKERFILES["root-in-the-image"][0].splitlines().index("# checkov:skip=CKV_DOCKER_8:not now") + 1
    assert suppressed.says.endswith(f"line {line}: # checkov:skip=CKV_DOCKER_8:not now")
    assert "PEN_SKIP_1" not in {finding.rule for finding in found["root-without-a-word"]}


def test_a_changed_object_is_not_covered_by_the_shipped_waiver(shipped: dict[str, Stack]) -> None:
    def mount_all(manifest: Any) -> None:
        manifest["spec"]["template"]["spec"]["volumes"].append({"name": "all", "hostPath": {"path": "/"}})

    environment, references = load("production"), References(shipped.values())
    change = Fault("changed", "observability-charts", mount_all, (), "", ("helm_release.fluent-bit",), ("DaemonSet",))
    names = gate.names_of(environment, deployable_plans(environment))
    part = parts.of_stack(dataclasses.replace(planted(change, shipped, references), name=change.stack), references, names)
    findings = tuple(part.with_digest(one) for one in part.findings)
    judged = gate.judge(gate.Examined(findings, (), 0, 0), {}, waivers.read(gate.WAIVERS), datetime.date(2026, 11, 25))
    # All of its volumes: it is the object that has changed.
    assert {(type(fault), fault.path) for fault in judged.faults} == {
        (ChangedSinceWaived, "observability-charts/DaemonSet.logging.fluent-bit")
    }
    assert findings[0].digest in judged.faults[0].render()


def test_penstocks_own_rules_find_in_the_shipped_stacks_only_what_is_waived(shipped: dict[str, Stack]) -> None:
    environment = load("production")
    references, names = References(shipped.values()), gate.names_of(environment, deployable_plans(environment))
    accepted = waivers.read(gate.WAIVERS)
    of_stacks = [parts.of_stack(stack, references, names) for stack in shipped.values()]
    left = [one for part in of_stacks for one in map(part.with_digest, part.findings) if not any(waiver.covers(one) for waiver in accepted)]
    assert left == []


def test_a_waiver_of_the_shipped_buckets_holds_for_buckets_of_other_names(shipped: dict[str, Stack], tmp_path: Path) -> None:
    environment = load("production")
    spec = environment.spec
    buckets = spec.buckets.model_copy(update={"checkpoints": "team-checkpoints-123456789012", "output": "team-output"})
    own = environment.with_spec(buckets=buckets)
    planned = deployable_plans(own)
    stacks = {stack.name: stack for stack in offline_plan.stacks_offline(own, planned, tmp_path)}
    digests = [
        parts.of_stack(of["checkpoints"], References(of.values()), gate.names_of(one, planned)).digests
        for one, of in ((environment, shipped), (own, stacks))
    ]
    assert digests[0] == digests[1]
