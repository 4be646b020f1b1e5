"""A deploy's or a destroy's plan as people and as programs read it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from penstock.scripts.provisioning.deployment import Deferred
from penstock.scripts.provisioning.planned_changes import ResourceChange, StackChanges

_SIGNS = {"change": "~", "replace": "-/+", "destroy": "-", "forget": "."}


def render(planned: Mapping[str, StackChanges | Deferred]) -> str:
    """A line a stack, and below it all that is not merely created.

    Args:
        planned: by stack, in order.
    """
    width = max((len(name) for name in planned), default=0)
    lines = [line for name, found in planned.items() for line in _lines(name, found, width)]
    return "\n".join([*lines, _total(planned), ""])


def _lines(name: str, found: StackChanges | Deferred, width: int) -> list[str]:
    lines = [f"  {name:<{width}}  {found}"]
    if isinstance(found, StackChanges):
        lines += [f"  {'':<{width}}    {_SIGNS[change.action]:<3} {_what(change)}" for change in found.changes if change.action in _SIGNS]
        lines += [f"  {'':<{width}}    >   {address}, which is there already" for address in sorted(found.imported)]
    return lines


def _what(change: ResourceChange) -> str:
    return change.address + (f"  ({', '.join(change.why)})" if change.why else "")


def _total(planned: Mapping[str, StackChanges | Deferred]) -> str:
    counts: Counter[str] = Counter()
    for found in planned.values():
        if isinstance(found, Deferred):
            counts["create"] += found.resources
        else:
            counts.update(change.action for change in found.changes)
    return "  " + (", ".join(f"{count} to {action}" for action, count in counts.items()) or "nothing to do")


def document(planned: Mapping[str, StackChanges | Deferred]) -> list[dict[str, Any]]:
    """The same for programs, a mapping a stack.

    Args:
        planned: by stack, in order.
    """
    return [_document(name, found) for name, found in planned.items()]


def _document(name: str, found: StackChanges | Deferred) -> dict[str, Any]:
    if isinstance(found, Deferred):
        return {"stack": name, "waitsFor": found.waits_for, "resources": found.resources}
    changes = [{"address": change.address, "action": change.action, "why": list(change.why)} for change in found.changes]
    return {"stack": name, "changes": changes, "imports": sorted(found.imported), "changesOutputs": found.changes_outputs}
