"""Output of a deploy's or a destroy's plan, as a table and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from penstock.scripts.provisioning.deployment import Deferred
from penstock.scripts.provisioning.planned_changes import ResourceChange, StackChanges
from penstock.scripts.render.screen import Screen
from penstock.scripts.render.table import Column, Row, Styled, table

_SIGNS = {"change": "~", "replace": "-/+", "destroy": "-", "forget": "."}
_STYLES = {"change": "yellow", "replace": "red", "destroy": "red", "forget": "yellow"}


def render(planned: Mapping[str, StackChanges | Deferred], screen: Screen) -> str:
    """Render a row per stack, followed by all changes other than plain creations.

    Args:
        planned: changes by stack, in order.
        screen: the console that the text is rendered for.
    """
    columns = (Column("stack"), Column(), Column("plan", wraps=True))
    rows = [row for name, changes in planned.items() for row in _rows(name, changes)]
    return "\n".join([*table(columns, rows, screen), "", _total(planned), ""])


def _rows(name: str, changes: StackChanges | Deferred) -> Iterator[Row]:
    yield name, "", str(changes)
    if isinstance(changes, StackChanges):
        for change in changes.changes:
            if change.action in _SIGNS:
                yield "", Styled(_SIGNS[change.action], _STYLES[change.action]), _what(change)
        yield from (("", ">", f"{address} (import)") for address in sorted(changes.imported))


def _what(change: ResourceChange) -> str:
    return change.address + (f" (forced by {', '.join(change.why)})" if change.why else "")


def _total(planned: Mapping[str, StackChanges | Deferred]) -> str:
    counts: Counter[str] = Counter()
    for changes in planned.values():
        if isinstance(changes, Deferred):
            counts["create"] += changes.resources
        else:
            counts.update(change.action for change in changes.changes)
    return "Plan: " + (", ".join(f"{count} to {action}" for action, count in counts.items()) or "no changes")


def document(planned: Mapping[str, StackChanges | Deferred]) -> list[dict[str, Any]]:
    """Return the plan for JSON output, one mapping per stack.

    Args:
        planned: changes by stack, in order.
    """
    return [_document(name, changes) for name, changes in planned.items()]


def _document(name: str, stack: StackChanges | Deferred) -> dict[str, Any]:
    if isinstance(stack, Deferred):
        return {"stack": name, "waitsFor": stack.waits_for, "resources": stack.resources}
    changes = [{"address": change.address, "action": change.action, "why": list(change.why)} for change in stack.changes]
    return {"stack": name, "changes": changes, "imports": sorted(stack.imported), "changesOutputs": stack.changes_outputs}
