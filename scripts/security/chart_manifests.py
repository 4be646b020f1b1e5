"""Kubernetes manifests that a charts stack releases."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from penstock.scripts.provisioning.stacks import Stack
from penstock.scripts.security.offline_plan import resolved

_OF_ANOTHER = re.compile(r"\$\{data\.terraform_remote_state\.cross-stack-reference-input-(?P<stack>[\w-]+)\.outputs\.(?P<output>[\w-]+)\}")


def manifests(stack: Stack, stacks: Sequence[Stack]) -> list[dict[str, Any]]:
    """Render the manifests, with placeholders for values that only Terraform knows.

    Args:
        stack: a charts stack.
        stacks: all stacks of the environment, for the outputs that it refers to.
    """
    outputs = {other.name: other.content().get("output", {}) for other in stacks}
    return [manifest for values in _values(stack) for manifest in json.loads(_filled(values, outputs)).get("manifests", [])]


def _values(stack: Stack) -> Iterator[str]:
    """Values of each release of a local chart; third-party charts have their own templates."""
    for release in stack.content().get("resource", {}).get("helm_release", {}).values():
        if "repository" not in release:
            yield from release.get("values", [])


def _filled(values: str, outputs: Mapping[str, Mapping[str, Any]]) -> str:
    def fill(match: re.Match[str]) -> str:
        made = resolved(outputs[match["stack"]][match["output"]]["value"])
        return json.dumps(str(made))[1:-1]

    return _OF_ANOTHER.sub(fill, values)
