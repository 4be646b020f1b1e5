"""Output of a destroy's plan, as a table and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from penstock.scripts.provisioning.keeping import DestroyAction
from penstock.scripts.provisioning.orphans import Orphan
from penstock.scripts.render.screen import Screen
from penstock.scripts.render.table import Column, Row, table


def render(destroy_actions: Sequence[DestroyAction], orphans: Sequence[Orphan], screen: Screen) -> str:
    """Render the stacks in order of destruction, the resources that are kept and why, and what remains in the account.

    Args:
        destroy_actions: what is destroyed and kept, in the stacks' dependency order.
        orphans: resources that remain in the account.
        screen: the console that the text is rendered for.
    """
    columns = (Column("stack"), Column("destroy", right=True), Column("keep", right=True), Column("kept resources", wraps=True))
    lines = table(columns, [row for action in reversed(destroy_actions) for row in _rows(action)], screen)
    if orphans:
        left = (Column("kind"), Column("id"), Column("why", wraps=True))
        lines += ["", "Left in the account:", "", *table(left, [(orphan.kind, orphan.id, orphan.why) for orphan in orphans], screen)]
    return "\n".join([*lines, ""])


def _rows(action: DestroyAction) -> Iterator[Row]:
    kept = [f"{address}: {why}" for address, why in sorted(action.why.items())]
    if action.kept and not kept:
        kept = ["all: a kept stack depends on them"]
    if not action.state.resources:
        kept = ["not deployed"]
    yield action.name, _count(len(action.destroyed)), _count(len(action.kept)), kept[0] if kept else ""
    yield from (("", "", "", line) for line in kept[1:])


def _count(number: int) -> str:
    return f"{number:,}" if number else "-"


def document(destroy_actions: Sequence[DestroyAction], orphans: Sequence[Orphan]) -> dict[str, Any]:
    """Return the plan for JSON output.

    Args:
        destroy_actions: see `render`.
        orphans: see `render`.
    """
    stacks = [
        {"stack": action.name, "destroy": list(action.destroyed), "kept": sorted(action.kept), "why": dict(action.why)}
        for action in reversed(destroy_actions)
    ]
    return {"stacks": stacks, "orphans": [vars(orphan) for orphan in orphans]}
