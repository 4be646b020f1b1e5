from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from penstock.infra.environment_file import load
from penstock.infra.errors import BrokersUnknown, NodeNotFound
from penstock.infra.plans import plans
from penstock.scripts.errors import SynthFailed
from penstock.scripts.layout import ROOT
from penstock.scripts.provisioning import stacks
from tests.infra.environments import read


def test_a_synth_without_node_reports_what_is_missing(tmp_path: Path) -> None:
    """Errors of the app keep their own code and exit code, and are not reported as a failed synth."""
    with pytest.raises(NodeNotFound) as raised:
        stacks.synthesize(load("local"), tmp_path, base={**os.environ, "PATH": str(tmp_path)})
    assert raised.value.exit_code == 4


def test_a_synth_beyond_its_limit_is_ended(tmp_path: Path) -> None:
    with pytest.raises(SynthFailed) as raised:
        stacks.synthesize(load("local"), tmp_path, limit_s=0.01)
    assert raised.value.need == "completion within 0.01 s"


@pytest.mark.skipif(shutil.which("node") is None, reason="cdktf needs Node.js, and node is not in PATH")
def test_the_folders_of_the_stacks_are_returned_with_their_states_next_to_them(tmp_path: Path) -> None:
    folders = stacks.synthesize(load("local"), tmp_path / "out", only=["checkpoints"])
    assert [folder.name for folder in folders] == ["checkpoints"]
    text = (folders[0] / "cdk.tf.json").read_text()
    assert '"path": "../../state/local/checkpoints.tfstate"' in text
    assert str(tmp_path) not in text


@pytest.mark.skipif(shutil.which("node") is None, reason="cdktf needs Node.js, and node is not in PATH")
def test_stacks_are_returned_in_order_with_the_outputs_that_each_uses_of_the_others(tmp_path: Path) -> None:
    synthesized = stacks.synthesized(load("local"), tmp_path / "out", only=["jobs"])
    before: list[str] = []
    for stack in synthesized:
        assert set(stack.inputs) <= set(stack.dependencies) <= set(before)
        assert all(set(others) <= set(stack.inputs) for others in stack.resource_inputs.values())
        before.append(stack.name)
    outputs = {stack.name: set(stack.content().get("output", {})) for stack in synthesized}
    jobs = synthesized[before.index("jobs")]
    assert "checkpoints" in jobs.inputs
    assert all(set(taken) <= outputs[other] for other, taken in jobs.inputs.items())
    assert {address.split(".")[0] for address in jobs.resource_inputs} <= set(jobs.content()["resource"])


@pytest.mark.skipif(shutil.which("node") is None, reason="cdktf needs Node.js, and node is not in PATH")
def test_karpenters_charts_come_after_the_network_whose_subnets_they_name(tmp_path: Path) -> None:
    synthesized = stacks.synthesized(read(tmp_path, lambda spec: None), tmp_path / "out", only=["karpenter-charts"])
    (charts,) = [stack for stack in synthesized if stack.name == "karpenter-charts"]
    assert "network" in charts.dependencies


@pytest.mark.skipif(shutil.which("node") is None, reason="cdktf needs Node.js, and node is not in PATH")
def test_what_is_planned_is_handed_on_and_not_planned_again(tmp_path: Path) -> None:
    spec = tmp_path / "clicks.yaml"
    spec.write_text((ROOT / "jobs/specs/user_credit.yaml").read_text(encoding="utf-8"), encoding="utf-8")
    environment = read(tmp_path, lambda changed: changed.update(jobs=[spec.name]))
    planned = plans(environment)
    spec.unlink()
    folders = stacks.synthesize(environment, tmp_path / "out", planned=planned, only=["karpenter-charts"])
    assert "karpenter-charts" in [folder.name for folder in folders]


@pytest.mark.skipif(shutil.which("node") is None, reason="cdktf needs Node.js, and node is not in PATH")
def test_an_error_of_a_stack_is_reported_with_the_line_in_the_environments_file(tmp_path: Path) -> None:
    environment = read(tmp_path, lambda changed: changed.update(kafka={"kind": "external"}))
    with pytest.raises(BrokersUnknown) as raised:
        stacks.synthesize(environment, tmp_path / "out", planned=plans(environment), only=["kafka"])
    at = raised.value.at
    assert at is not None and at.line is not None
    assert at.file == str(tmp_path / "environment.yaml")
    assert (tmp_path / "environment.yaml").read_text().splitlines()[at.line - 1].strip() == "kafka:"
