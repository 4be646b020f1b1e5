"""What a long command shows while it works: a line for each thing done, with its time, and on a terminal what it is at now."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape

_LABEL = 12


class Steps:
    """Lines on standard error, so that what a command prints for programs stays clean.

    Args:
        console: where to; standard error by default.
    """

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(file=sys.stderr, highlight=False, soft_wrap=True, emoji=False)

    def title(self, text: str) -> None:
        """A headline."""
        self._console.print(f"\n{text}", style="bold", markup=False)

    def line(self, label: str, text: str) -> None:
        """One thing done or found."""
        first, *rest = text.splitlines() or [""]
        self._console.print(f"  {label:<{_LABEL}}{first}", markup=False)
        for more in rest:
            self._console.print(f"  {'':<{_LABEL}}{more}", markup=False)

    @contextmanager
    def at(self, label: str, doing: str) -> Iterator[Step]:
        """Shows what is done now; says what was done, and how long it took, when it is over."""
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
    """One thing being done; `said` is what the line says in the end, and `watch` is called with what is done now."""

    def __init__(self, said: str) -> None:
        self.said = said
        self.watch: Callable[[str], None] = lambda now: None
