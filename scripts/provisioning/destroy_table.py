"""What a destroy would do, as people and as programs read it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from penstock.scripts.provisioning.keeping import DestroyAction
from penstock.scripts.provisioning.orphans import Orphan
from penstock.scripts.render.screen import Screen
from penstock.scripts.render.table import Column, Row, table


def render(destroy_actions: Sequence[DestroyAction], orphans: Sequence[Orphan], screen: Screen) -> str:
    """The stacks in the order in which they are destroyed, what of them is kept and why, and what is left in the account.

    Args:
        destroy_actions: in the order of the stacks' dependencies.
        orphans: what is left in the account.
        screen: where it goes.
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
    """The same for programs.

    Args:
        destroy_actions: as of `render`.
        orphans: as of `render`.
    """
    stacks = [
        {"stack": action.name, "destroy": list(action.destroyed), "kept": sorted(action.kept), "why": dict(action.why)}
        for action in reversed(destroy_actions)
    ]
    return {"stacks": stacks, "orphans": [vars(orphan) for orphan in orphans]}
