"""What a destroy would do, as people and as programs read it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.scripts.provisioning.keeping import Fate
from penstock.scripts.provisioning.orphans import Orphan


def render(fates: Sequence[Fate], orphans: Sequence[Orphan]) -> str:
    """The stacks in the order in which they go, what of them stays and why, and what nobody takes away.

    Args:
        fates: in the order of the stacks' dependencies.
        orphans: what stays in the account.
    """
    width = max((len(fate.name) for fate in fates), default=0)
    lines = [line for fate in reversed(fates) for line in _lines(fate, width)]
    if orphans:
        kinds = max(len(orphan.kind) for orphan in orphans)
        lines += ["", "  stays in the account, for no stack has it or AWS keeps it:"]
        lines += [f"    {orphan.kind:<{kinds}}  {orphan.id}: {orphan.why}" for orphan in orphans]
    return "\n".join([*lines, ""])


def _lines(fate: Fate, width: int) -> list[str]:
    if not fate.state.resources:
        return [f"  {fate.name:<{width}}  nothing is there"]
    counts = [f"{len(fate.destroyed)} to destroy"] if fate.destroyed else []
    counts += [f"{len(fate.kept)} kept"] if fate.kept else []
    lines = [f"  {fate.name:<{width}}  {', '.join(counts)}"]
    lines += [f"  {'':<{width}}    = {address}: {why}" for address, why in sorted(fate.why.items())]
    if fate.kept and not fate.why:
        lines.append(f"  {'':<{width}}    = all of it: a stack that is kept stands on it")
    return lines


def document(fates: Sequence[Fate], orphans: Sequence[Orphan]) -> dict[str, Any]:
    """The same for programs.

    Args:
        fates: as of `render`.
        orphans: as of `render`.
    """
    stacks = [
        {"stack": fate.name, "destroy": list(fate.destroyed), "kept": sorted(fate.kept), "why": dict(fate.why)} for fate in reversed(fates)
    ]
    return {"stacks": stacks, "orphans": [vars(orphan) for orphan in orphans]}
