"""The Kubernetes manifests that a charts stack would release."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from penstock.scripts.provisioning.stacks import Stack
from penstock.scripts.security.offline_plan import resolved

_OF_ANOTHER = re.compile(r"\$\{data\.terraform_remote_state\.cross-stack-reference-input-(?P<stack>[\w-]+)\.outputs\.(?P<output>[\w-]+)\}")


def manifests(stack: Stack, stacks: Sequence[Stack]) -> list[dict[str, Any]]:
    """The manifests, with stand-ins for what Terraform would put in.

    Args:
        stack: a charts stack.
        stacks: all of the environment's, for what it takes of them.
    """
    outputs = {other.name: other.content().get("output", {}) for other in stacks}
    return [manifest for values in _values(stack) for manifest in json.loads(_filled(values, outputs)).get("manifests", [])]


def _values(stack: Stack) -> Iterator[str]:
    """The values of each release of a local chart; another's are its own language."""
    for release in stack.content().get("resource", {}).get("helm_release", {}).values():
        if "repository" not in release:
            yield from release.get("values", [])


def _filled(values: str, outputs: Mapping[str, Mapping[str, Any]]) -> str:
    def fill(found: re.Match[str]) -> str:
        made = resolved(outputs[found["stack"]][found["output"]]["value"])
        return json.dumps(str(made))[1:-1]

    return _OF_ANOTHER.sub(fill, values)
