"""The fields of an environment that a change of the repository changes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from penstock.jobs.document import Path_, dotted
from penstock.scripts.planning.quantities import Quantity
from penstock.scripts.review.base_tree import BaseTree
from penstock.scripts.review.side import Side

NOT_SET = "not set"


def environment_fields(before: Side, now: Side, tree: BaseTree) -> Iterator[Quantity]:
    """The fields of the environment that differ, as they are written there; none of an environment that is new.

    Args:
        before: the environment before the change.
        now: the environment after it.
        tree: the files before it.
    """
    old, new = (_flat(side, root) for side, root in ((before, tree.folder), (now, tree.root)))
    for path in {**old, **new} if old else ():
        if old.get(path) != new.get(path):
            was, is_ = (_written(side, path) or values.get(path) or NOT_SET for side, values in ((before, old), (now, new)))
            yield Quantity(what=dotted(path), before=was, now=is_)


def _flat(side: Side, root: Path) -> dict[Path_, str]:
    """Path of a field -> its value, with files by their paths in the repository."""
    document = side.environment.model_dump(mode="json", by_alias=True, exclude_none=True) if side.environment is not None else {}
    return {path: ", ".join(_told(value, root) for value in values) for path, values in _leaves(document, ())}


def _told(value: object, root: Path) -> str:
    return "." if value == str(root) else str(value).replace(f"{root}/", "")


def _written(side: Side, path: Path_) -> str:
    document = side.environment.document if side.environment is not None else None
    return document.given(path) if document is not None else ""


def _leaves(part: object, path: Path_) -> Iterator[tuple[Path_, list[object]]]:
    if isinstance(part, dict) and part:
        for name, value in part.items():
            yield from _leaves(value, (*path, name))
    elif isinstance(part, list) and any(isinstance(one, dict) for one in part):
        for number, value in enumerate(part):
            yield from _leaves(value, (*path, number))
    else:
        yield path, part if isinstance(part, list) else [part]
