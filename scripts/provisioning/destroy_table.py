"""What a destroy would do, as people and as programs read it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.scripts.provisioning.keeping import DestroyAction
from penstock.scripts.provisioning.orphans import Orphan


def render(destroy_actions: Sequence[DestroyAction], orphans: Sequence[Orphan]) -> str:
    """The stacks in the order in which they go, what of them stays and why, and what nobody takes away.

    Args:
        destroy_actions: in the order of the stacks' dependencies.
        orphans: what stays in the account.
    """
    width = max((len(action.name) for action in destroy_actions), default=0)
    lines = [line for action in reversed(destroy_actions) for line in _lines(action, width)]
    if orphans:
        kinds = max(len(orphan.kind) for orphan in orphans)
        lines += ["", "  stays in the account, for no stack has it or AWS keeps it:"]
        lines += [f"    {orphan.kind:<{kinds}}  {orphan.id}: {orphan.why}" for orphan in orphans]
    return "\n".join([*lines, ""])


def _lines(action: DestroyAction, width: int) -> list[str]:
    if not action.state.resources:
        return [f"  {action.name:<{width}}  nothing is there"]
    counts = [f"{len(action.destroyed)} to destroy"] if action.destroyed else []
    counts += [f"{len(action.kept)} kept"] if action.kept else []
    lines = [f"  {action.name:<{width}}  {', '.join(counts)}"]
    lines += [f"  {'':<{width}}    = {address}: {why}" for address, why in sorted(action.why.items())]
    if action.kept and not action.why:
        lines.append(f"  {'':<{width}}    = all of it: a stack that is kept stands on it")
    return lines


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
