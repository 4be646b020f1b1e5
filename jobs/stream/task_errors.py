"""Errors of a task on their way to the driver, which only sees the text of a traceback."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

from penstock.sizing.errors import PenstockError, restored

_MARK = "penstock-error "


class TaskFailed(Exception):
    """A Penstock error raised in a task: its text is the error as JSON."""

    def __init__(self, error: PenstockError) -> None:
        super().__init__(_MARK + json.dumps(error.as_json()))


@contextmanager
def in_a_task() -> Iterator[None]:
    """Raises Penstock errors in a form that the driver recognises."""
    try:
        yield
    except PenstockError as error:
        raise TaskFailed(error) from error


def of_a_task(error: Exception) -> PenstockError | None:
    """The Penstock error in Spark's message of a failed task; None if there is none."""
    for line in str(error).splitlines():
        _, mark, text = line.partition(_MARK)
        if mark:
            try:
                return restored(json.JSONDecoder().raw_decode(text)[0])
            except (ValueError, KeyError):
                continue
    return None


def first_line(error: BaseException) -> str:
    """The first line of an exception's message; its class if it has none."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
