"""Ends a driver in the test's process at a chosen point, as if it were killed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from penstock.jobs.sinks.files import Files
from penstock.jobs.sinks.publishing import Publisher
from penstock.jobs.storage.checkpoint import Checkpoint

Point = tuple[type, str, bool]


class Killed(Exception):
    """Represents the end of the process at a chosen point."""


def before(owner: type, method: str) -> Point:
    """Before a call of a method."""
    return owner, method, False


def after(owner: type, method: str) -> Point:
    """After a call of a method."""
    return owner, method, True


POINTS = {
    "before anything is staged": before(Files, "write"),
    "after the rows are staged, before the manifest": before(Checkpoint, "put_once"),
    "after the manifest, before any file is there": before(Publisher, "publish"),
    "after the files are there, before the record": before(Checkpoint, "record"),
    "after the record, before Spark's commit": after(Checkpoint, "record"),
}


@contextmanager
def killed_at(point: Point, only_if: Callable[..., bool] = lambda *_: True) -> Iterator[None]:
    """Ends the micro-batch at a point by an error that is never caught, which leaves behind what a killed process leaves."""
    owner, method, after = point
    with pytest.MonkeyPatch.context() as patch:
        original = getattr(owner, method)

        def instead(*arguments: Any, **named: Any) -> Any:
            if not only_if(*arguments):
                return original(*arguments, **named)
            if after:
                original(*arguments, **named)
            raise Killed

        patch.setattr(owner, method, instead)
        yield
