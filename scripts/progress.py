"""Progress of a long command: a line with the duration of each finished step, and on a terminal the current one."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape

_LABEL = 12


class Steps:
    """Progress lines on standard error, so that standard output stays machine-readable.

    Args:
        console: the console; standard error by default.
    """

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(file=sys.stderr, highlight=False, soft_wrap=True, emoji=False)

    def title(self, text: str) -> None:
        """Print a heading."""
        self._console.print(f"\n{text}", style="bold", markup=False)

    def line(self, label: str, text: str) -> None:
        """Print a result."""
        first, *rest = text.splitlines() or [""]
        self._console.print(f"  {label:<{_LABEL - 1}} {first}", markup=False)
        for more in rest:
            self._console.print(f"  {'':<{_LABEL}}{more}", markup=False)

    @contextmanager
    def at(self, label: str, doing: str) -> Iterator[Step]:
        """Show a step while it runs; print its result and duration at the end."""
        step = Step(doing)
        began_s = time.monotonic()
        if not self._console.is_terminal:
            self.line(label, f"{doing} ...")
            yield step
        else:
            with self._console.status(f"{label}: {doing}") as status:
                step.watch = lambda now: status.update(f"{label}: {escape(now)}")
                yield step
        self.line(label, f"{step.said}  ({time.monotonic() - began_s:.1f} s)")


class Step:
    """A running step; `said` is the text of its final line, and `watch` is called with the current activity."""

    def __init__(self, said: str) -> None:
        self.said = said
        self.watch: Callable[[str], None] = lambda now: None
