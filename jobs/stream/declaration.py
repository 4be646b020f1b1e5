"""What an app's blocks register while the app is being built: names of calls, side-output tags, and where each thing is declared."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

# File and line of calls, the outermost first.
Frames = tuple[tuple[str, int], ...]


@dataclass
class Names:
    """The names that the app being built has registered so far.

    Args:
        calls: names of calls; the journal of responses is keyed by them.
        tags: tag -> the block that may assign it to rows. Tags that a keyed function chooses at run time cannot be known.
        places: what is declared, as errors call it -> the calls that have led there.
    """

    calls: set[str] = field(default_factory=set)
    tags: dict[str, str] = field(default_factory=dict)
    places: dict[str, Frames] = field(default_factory=dict)


# None while no app is being built.
_OF_THE_APP: ContextVar[Names | None] = ContextVar("_OF_THE_APP", default=None)


@contextmanager
def building() -> Iterator[Names]:
    """Context while an app declares its job: collects the names that its blocks register."""
    names = Names()
    token = _OF_THE_APP.set(names)
    try:
        yield names
    finally:
        _OF_THE_APP.reset(token)


def name_call(name: str) -> None:
    """Registers the name of a call.

    Raises:
        ValueError: the app already uses the name; one call would read the other's responses from the journal.
    """
    names = _OF_THE_APP.get()
    if names is None:
        return
    if name in names.calls:
        raise ValueError(f'name = "{name}": already used by another call of the app, and responses are journaled by name; use unique names')
    names.calls.add(name)


def name_tag(tag: str, block: str) -> None:
    """Registers a tag that a block may assign to rows, which then need a side output.

    Args:
        tag: as in ``job.side_output(sink, tag)``.
        block: for error messages, such as ``stream.divert``.
    """
    names = _OF_THE_APP.get()
    if names is not None:
        names.tags.setdefault(tag, block)
        declared_at(block)


def declared_at(path: str) -> None:
    """Registers where the app declares something, for errors that are found later.

    Args:
        path: as errors call it, such as ``job.write(..., "out")``; its first declaration counts.
    """
    names = _OF_THE_APP.get()
    if names is not None and path not in names.places:
        frames = traceback.walk_stack(sys._getframe(1))
        names.places[path] = tuple((frame.f_code.co_filename, line) for frame, line in frames)[::-1]
