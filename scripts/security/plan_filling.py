"""What an offline plan leaves out: an argument with a reference is known only after the apply, and a plan has no value for it.

Each such argument gets the synthesized value, with a placeholder for each reference, so that the scanner sees the whole resource.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.scripts.provisioning.stacks import Stack
from penstock.scripts.security.references import References, is_resolved, unescaped

# Source: Terraform's documentation, "Meta-Arguments"; "//" is cdktf's comment.
_META = frozenset({"//", "count", "connection", "depends_on", "for_each", "lifecycle", "provider", "provisioner"})


def filled(plan: Mapping[str, Any], stack: Stack, references: References) -> dict[str, Any]:
    """A plan with all arguments of its resources.

    Args:
        plan: in the format of ``terraform show -json``.
        stack: the planned stack.
        references: the placeholders.
    """
    written = dict(stack.resources())
    root = plan.get("planned_values", {}).get("root_module", {})
    resources = [
        {**resource, "values": _filled(resource.get("values", {}), _arguments(written.get(_address(resource), {})), references)}
        for resource in root.get("resources", [])
    ]
    return {**plan, "planned_values": {**plan.get("planned_values", {}), "root_module": {**root, "resources": resources}}}


def _address(resource: Mapping[str, Any]) -> str:
    return f"{resource['type']}.{resource['name']}"


def _arguments(written: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in written.items() if name not in _META}


def _filled(planned: Any, written: Any, references: References) -> Any:
    if planned is None or planned in ([], ""):
        return _value(written, references)
    if isinstance(planned, Mapping) and isinstance(written, Mapping):
        return {**planned, **{name: _filled(planned.get(name), value, references) for name, value in written.items()}}
    if isinstance(planned, list):
        return _filled_list(planned, written, references)
    return planned


def _filled_list(planned: Sequence[Any], written: Any, references: References) -> Any:
    # A block that can occur once is a mapping in cdktf's JSON and a list in a plan.
    blocks = [written] if isinstance(written, Mapping) else written
    if not isinstance(blocks, Sequence) or isinstance(blocks, str):
        return planned
    if len(blocks) != len(planned):
        return _value(blocks, references)
    return [_filled(one, block, references) for one, block in zip(planned, blocks, strict=True)]


def _value(written: Any, references: References) -> Any:
    made = references.resolved(written)
    return unescaped(made) if isinstance(made, str) and is_resolved(made) else made
