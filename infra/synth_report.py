"""The report of the process that synthesizes stacks, as one JSON document: the stacks with their inputs from other stacks, or the errors.

Order and dependencies come from cdktf's manifest. The inputs come from each stack's Terraform configuration, where cdktf declares a
``terraform_remote_state`` per upstream stack and references its outputs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from penstock.sizing.errors import PenstockError

# Source: cdktf 0.21, TerraformStack.registerIncomingCrossStackReference, and Terraform's syntax of a reference to a data source.
REMOTE_OUTPUT = re.compile(r"data\.terraform_remote_state\.cross-stack-reference-input-(?P<stack>[\w-]+)\.outputs\.(?P<output>[\w-]+)")


class _Reported(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class SynthesizedStack(_Reported):
    """A synthesized stack.

    Args:
        name: stack id.
        folder: contains its cdk.tf.json; relative to the output folder of the synth.
        dependencies: ids of the stacks it depends on.
        inputs: upstream stack id -> names of the outputs it references.
        resource_inputs: resource address -> ids of the upstream stacks it references; only resources that reference one.
    """

    name: str
    folder: Path
    dependencies: tuple[str, ...]
    inputs: dict[str, tuple[str, ...]]
    resource_inputs: dict[str, tuple[str, ...]]


class SynthReport(_Reported):
    """The result of a synth.

    Args:
        schema_version: of this document.
        stacks: in the order in which they can be applied; empty if there are errors.
        errors: as `PenstockError.as_json` returns them.
    """

    schema_version: Literal[1] = 1
    stacks: tuple[SynthesizedStack, ...] = ()
    errors: tuple[dict[str, str | int | None], ...] = ()


def report(folder: Path) -> SynthReport:
    """Reports the synthesized stacks.

    Args:
        folder: output folder of cdktf.
    """
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    return SynthReport(stacks=tuple(_stack(folder, one) for one in in_order(manifest["stacks"])))


def failure(error: PenstockError) -> SynthReport:
    """Reports why there are no stacks."""
    return SynthReport(errors=tuple(fault.as_json() for fault in error.errors))


def in_order(stacks: Mapping[str, Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The stacks of a manifest, each after its dependencies."""
    ordered: dict[str, Mapping[str, Any]] = {}

    def add(name: str) -> None:
        for dependency in stacks[name]["dependencies"]:
            add(dependency)
        ordered.setdefault(name, stacks[name])

    for name in stacks:
        add(name)
    return list(ordered.values())


def _stack(folder: Path, one: Mapping[str, Any]) -> SynthesizedStack:
    content = json.loads((folder / one["workingDirectory"] / "cdk.tf.json").read_text(encoding="utf-8"))
    inputs: dict[str, set[str]] = {}
    for stack, output in _references(content):
        inputs.setdefault(stack, set()).add(output)
    return SynthesizedStack(
        name=one["name"],
        folder=Path(one["workingDirectory"]),
        dependencies=tuple(one["dependencies"]),
        inputs={stack: tuple(sorted(outputs)) for stack, outputs in inputs.items()},
        resource_inputs=dict(_resource_inputs(content.get("resource", {}))),
    )


def _resource_inputs(resources: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, tuple[str, ...]]]:
    for kind, named in resources.items():
        for name, arguments in named.items():
            stacks = sorted({stack for stack, _ in _references(arguments)})
            if stacks:
                yield f"{kind}.{name}", tuple(stacks)


def _references(value: Any) -> Iterator[tuple[str, str]]:
    """Stack and output of each reference to another stack in a part of a configuration."""
    if isinstance(value, str):
        yield from ((match["stack"], match["output"]) for match in REMOTE_OUTPUT.finditer(value))
    elif isinstance(value, Mapping):
        yield from _of_each(value.values())
    elif isinstance(value, list):
        yield from _of_each(value)


def _of_each(values: Iterable[Any]) -> Iterator[tuple[str, str]]:
    for value in values:
        yield from _references(value)
