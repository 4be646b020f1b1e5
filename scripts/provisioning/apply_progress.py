"""Progress of an apply or a destroy: a bar on a terminal, elsewhere a line from time to time, so that a log does not look dead."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from penstock.scripts.progress import Steps

# Interval of lines without a terminal.
LINE_EVERY_S = 30.0


class ApplyProgress:
    """Finished resources, their total, and those in progress.

    Args:
        stack: the stack's id.
        total: number of resources to change.
        steps: shows the bar, or receives the lines.
    """

    def __init__(self, stack: str, total: int, steps: Steps) -> None:
        self._stack = stack
        self._total = total
        self._steps = steps
        self._done = 0
        self._waiting: dict[str, int] = {}
        self._said_s = time.monotonic()
        self._bar: tuple[Progress, Any] | None = None

    @contextmanager
    def shown(self) -> Iterator[ApplyProgress]:
        """Show a bar meanwhile, on a terminal."""
        texts = (TextColumn("  {task.description}"), TextColumn("{task.fields[at]}"))
        bar = Progress(texts[0], BarColumn(20), MofNCompleteColumn(), TimeElapsedColumn(), texts[1])
        if self._steps.on_terminal:
            self._bar = (bar, bar.add_task(self._stack, total=self._total, at=""))
        with self._steps.showing(bar):
            yield self

    def take(self, event: Mapping[str, Any]) -> None:
        """Process an event from Terraform."""
        hook = event.get("hook") or {}
        address = hook.get("resource", {}).get("addr", "")
        kind = event.get("type")
        if kind in ("apply_start", "apply_progress"):
            self._waiting[address] = int(hook.get("elapsed_seconds", 0))
        elif kind in ("apply_complete", "apply_errored"):
            self._waiting.pop(address, None)
            self._done += kind == "apply_complete" and hook.get("action") != "read"
        else:
            return
        self._show()

    def _show(self) -> None:
        longest = max(self._waiting, key=lambda address: self._waiting[address], default="")
        at = f"{longest} ({self._waiting[longest]} s)" if longest else ""
        if self._bar is not None:
            bar, task = self._bar
            bar.update(task, completed=self._done, at=at)
        elif time.monotonic() - self._said_s >= LINE_EVERY_S:
            self._said_s = time.monotonic()
            self._steps.line(f"{self._stack} ", f"{self._done} of {self._total} resources done; {at}")
