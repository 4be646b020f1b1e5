"""Errors of a task on their way to the driver, which sees no more of them than the text of a traceback."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

from penstock.sizing.errors import PenstockError, told

_MARK = "penstock-error "


class TaskFailed(Exception):
    """One of our errors, raised in a task: its text is the error as JSON."""

    def __init__(self, error: PenstockError) -> None:
        super().__init__(_MARK + json.dumps(error.as_json()))


@contextmanager
def in_a_task() -> Iterator[None]:
    """Raises our errors so that the driver knows them again."""
    try:
        yield
    except PenstockError as error:
        raise TaskFailed(error) from error


def of_a_task(error: Exception) -> PenstockError | None:
    """Our error in what Spark says of a failed task; None where it was none of ours."""
    for line in str(error).splitlines():
        _, found, text = line.partition(_MARK)
        if found:
            try:
                return told(json.JSONDecoder().raw_decode(text)[0])
            except (ValueError, KeyError):
                continue
    return None
