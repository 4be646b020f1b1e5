from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from penstock.infra.errors import UnknownStack
from penstock.infra.synth_report import SynthReport, failure, in_order, report
from penstock.sizing.errors import Faults

STATE = "data.terraform_remote_state.cross-stack-reference-input-network.outputs."


def synthesized(folder: Path, contents: dict[str, Any], dependencies: dict[str, list[str]]) -> Path:
    stacks = {name: {"name": name, "workingDirectory": f"stacks/{name}", "dependencies": dependencies.get(name, [])} for name in contents}
    for name, content in contents.items():
        (folder / "stacks" / name).mkdir(parents=True)
        (folder / "stacks" / name / "cdk.tf.json").write_text(json.dumps(content))
    (folder / "manifest.json").write_text(json.dumps({"stacks": stacks}))
    return folder


def test_a_stack_is_reported_with_what_it_and_each_of_its_resources_take_of_the_others(tmp_path: Path) -> None:
    plain = {"name": "plain"}
    cluster = {"vpc": f"${{{STATE}vpc-id}}", "subnets": [{"id": f'${{join(",", [{STATE}subnet-a, {STATE}subnet-b])}}'}]}
    kafka = {"resource": {"aws_msk_cluster": {"kafka": cluster}, "aws_kms_key": {"key": plain}}, "output": {"vpc": {"value": "x"}}}
    folder = synthesized(tmp_path, {"kafka": kafka, "network": {"resource": {}}}, {"kafka": ["network"]})
    network, stack = report(folder).stacks
    assert (network.name, network.inputs, network.resource_inputs) == ("network", {}, {})
    assert (stack.name, stack.folder, stack.dependencies) == ("kafka", Path("stacks/kafka"), ("network",))
    assert stack.inputs == {"network": ("subnet-a", "subnet-b", "vpc-id")}
    assert stack.resource_inputs == {"aws_msk_cluster.kafka": ("network",)}


def test_a_report_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    made = report(synthesized(tmp_path, {"network": {}}, {}))
    assert SynthReport.model_validate_json(made.model_dump_json()) == made


def test_where_there_are_no_stacks_the_errors_are_reported_all_of_them() -> None:
    faults = [UnknownStack(path="stack", given=name, need="one of network") for name in ("a", "b")]
    made = failure(Faults(faults))
    assert made.stacks == ()
    assert [error["given"] for error in SynthReport.model_validate_json(made.model_dump_json()).errors] == ["a", "b"]


def test_stacks_come_after_those_that_they_depend_on() -> None:
    manifest = {name: {"name": name, "dependencies": others} for name, others in {"a": ["c"], "b": ["a"], "c": []}.items()}
    assert [stack["name"] for stack in in_order(manifest)] == ["c", "a", "b"]
