"""``penstock rehearse`` of small stacks, with the faults that it is to find; Terraform is real."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest

from penstock.scripts.cli import rehearse
from penstock.scripts.cli.command import main
from penstock.scripts.emulation.emulated_aws import EmulatedAws
from penstock.scripts.errors import StacksDiffer, TerraformFailed
from penstock.scripts.local.rehearsal import Rehearsal
from penstock.scripts.local.rehearsed_stacks import RehearsedStacks
from penstock.scripts.provisioning.aws_access import AwsAccess
from penstock.scripts.render import junit_report, rehearsal_table
from penstock.scripts.render.rehearsal_stages import Outcome, Stage
from penstock.scripts.render.screen import Screen
from tests.emulated.small_stacks import PlainStacks, environment

pytestmark = pytest.mark.emulated

# Its input is another one with each plan.
RESTLESS = {"restless": {"input": "${timestamp()}"}}
REFUSED = {"refused": {"lifecycle": {"precondition": {"condition": '${terraform.workspace == "other"}', "error_message": "not here"}}}}


def small(aws: EmulatedAws, folder: Path, store: Mapping[str, Any]) -> RehearsedStacks:
    """Two stacks, the first of which has these resources, too."""
    own = environment(aws, f"re{uuid.uuid4().hex[:8]}")
    access = AwsAccess(own)
    assert own.spec.state is not None
    access.client("s3").create_bucket(Bucket=own.spec.state.bucket)
    return RehearsedStacks(PlainStacks(own, folder).written(store), access)


def rehearsed(aws: EmulatedAws, folder: Path, store: Mapping[str, Any]) -> Rehearsal:
    """The rehearsal of them."""
    rehearsal = Rehearsal(small(aws, folder, store))
    rehearsal.run()
    return rehearsal


def outcomes(rehearsal: Rehearsal) -> dict[tuple[str, Stage], Outcome]:
    return {(case.stack, case.stage): case.outcome for case in rehearsal.cases}


def test_stacks_that_are_as_they_were_applied_pass_every_stage(aws: EmulatedAws, tmp_path: Path) -> None:
    rehearsal = rehearsed(aws, tmp_path, {})
    assert rehearsal.errors == []
    assert set(outcomes(rehearsal).values()) == {Outcome.PASSED}
    assert [(case.stage, case.stack, case.resources) for case in rehearsal.cases] == [
        (Stage.APPLY, "store", 1),
        (Stage.APPLY, "reader", 1),
        (Stage.PLAN, "store", 0),
        (Stage.PLAN, "reader", 0),
        (Stage.DESTROY, "store", 1),
        (Stage.DESTROY, "reader", 1),
    ]


def test_a_second_plan_with_changes_is_a_fault_that_names_them(aws: EmulatedAws, tmp_path: Path) -> None:
    rehearsal = rehearsed(aws, tmp_path, RESTLESS)
    (fault,) = rehearsal.errors
    assert isinstance(fault, StacksDiffer)
    assert fault.path == "store" and "change terraform_data.restless" in fault.given
    found = outcomes(rehearsal)
    assert found["store", Stage.PLAN] is Outcome.FAILED and found["reader", Stage.PLAN] is Outcome.PASSED
    assert {found[stack, Stage.DESTROY] for stack in ("store", "reader")} == {Outcome.LEFT_OUT}


def test_a_stack_that_fails_is_a_fault_and_what_comes_after_it_is_left_out(aws: EmulatedAws, tmp_path: Path) -> None:
    rehearsal = rehearsed(aws, tmp_path, REFUSED)
    (fault,) = rehearsal.errors
    assert isinstance(fault, TerraformFailed) and "not here" in fault.render()
    found = outcomes(rehearsal)
    assert found.pop(("store", Stage.APPLY)) is Outcome.FAILED
    assert set(found.values()) == {Outcome.LEFT_OUT}
    suite = ElementTree.fromstring(junit_report.render(rehearsal.cases, "small"))
    assert (suite.get("name"), suite.get("tests"), suite.get("failures"), suite.get("skipped")) == (
        "penstock rehearse small",
        "6",
        "1",
        "5",
    )
    failure = suite.find("testcase[@classname='apply'][@name='store']/failure")
    assert failure is not None and failure.text is not None and "not here" in failure.text
    table = rehearsal_table.render(rehearsal.cases, Screen(width=100))
    assert "failed in" in table and "left out" in table


def test_a_failure_as_json_is_one_document_and_keeps_the_logs(
    aws: EmulatedAws, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of the small stacks in the place of an environment's own."""
    emulated = SimpleNamespace(moto=aws, stacks=small(aws, tmp_path / "stacks", RESTLESS))
    monkeypatch.setattr(rehearse, "EmulatedStacks", lambda *_, **__: nullcontext(emulated))
    assert main(["rehearse", "local", "--out", str(tmp_path / "out"), "-o", "json"]) == 1
    said = capsys.readouterr()
    failed = [stage for stage in json.loads(said.out)["stages"] if stage["outcome"] == "failed"]
    assert [(stage["stack"], stage["stage"]) for stage in failed] == [("store", "second plan")]
    assert "error[RUN-018]" in said.err and "error[RUN-018]" in failed[0]["message"]
    assert (tmp_path / "out/work").is_dir()
