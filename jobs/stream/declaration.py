"""What an app's blocks give names to while the app is built: calls, and tags of rows that go aside."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field


@dataclass
class Names:
    """Names that the app which is being built has given so far.

    Args:
        calls: of calls; the journal of answers goes by them.
        tags: tag -> the block that may give it to rows. Tags that a keyed function chooses at run time can't be known.
    """

    calls: set[str] = field(default_factory=set)
    tags: dict[str, str] = field(default_factory=dict)


# None while no app is being built.
_OF_THE_APP: ContextVar[Names | None] = ContextVar("_OF_THE_APP", default=None)


@contextmanager
def building() -> Iterator[Names]:
    """While an app declares its job: what its blocks give names to."""
    names = Names()
    token = _OF_THE_APP.set(names)
    try:
        yield names
    finally:
        _OF_THE_APP.reset(token)


def name_call(name: str) -> None:
    """Notes the name of calls.

    Raises:
        ValueError: the app has given the name before: one's calls would take the other's answers for theirs.
    """
    names = _OF_THE_APP.get()
    if names is None:
        return
    if name in names.calls:
        raise ValueError(f'name = "{name}": already used by another call of the app, and responses are journaled by name; use unique names')
    names.calls.add(name)


def name_tag(tag: str, block: str) -> None:
    """Notes a tag that a block may give to rows, which then need a side output.

    Args:
        tag: as in ``job.side_output(sink, tag)``.
        block: for errors, as ``stream.divert``.
    """
    names = _OF_THE_APP.get()
    if names is not None:
        names.tags.setdefault(tag, block)
