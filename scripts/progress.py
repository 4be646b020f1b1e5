"""Progress of a long command: a line with the duration of each finished step, and on a terminal the current ones."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

_LABEL = 12


class Steps:
    """Progress lines on standard error, so that standard output stays machine-readable. Several threads may have steps at the same time.

    Args:
        console: the console; standard error by default.
    """

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(file=sys.stderr, highlight=False, soft_wrap=True, emoji=False)
        self._one_at_a_time = Lock()
        self._running: list[RenderableType] = []
        self._live: Live | None = None

    @property
    def on_terminal(self) -> bool:
        """Whether running steps are shown."""
        return self._console.is_terminal

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
        if not self.on_terminal:
            self.line(label, f"{doing} ...")
            yield step
        else:
            # Plain text: what is shown may have brackets, which rich would take for markup.
            spinner = Spinner("dots", Text(f"{label.rstrip()}: {doing}"), style="status.spinner")
            step.watch = lambda now: spinner.update(text=Text(f"{label.rstrip()}: {now}"))
            with self.showing(spinner):
                yield step
        self.line(label, f"{step.said}  ({time.monotonic() - began_s:.1f} s)")

    @contextmanager
    def showing(self, running: RenderableType) -> Iterator[None]:
        """Show something below the lines while it runs, on a terminal.

        Args:
            running: what rich draws, again and again.
        """
        if not self.on_terminal:
            yield
            return
        with self._one_at_a_time:
            self._running.append(running)
            if self._live is None:
                # One for all: rich takes several away in the order in which they were begun, whichever ends first.
                self._live = Live(console=self._console, transient=True, refresh_per_second=12.5, get_renderable=self._drawn)
                self._live.start()
            self._live.refresh()
        try:
            yield
        finally:
            self._hide(running)

    def _drawn(self) -> RenderableType:
        return Group(*self._running)

    def _hide(self, running: RenderableType) -> None:
        with self._one_at_a_time:
            self._running = [other for other in self._running if other is not running]
            if self._live is not None and not self._running:
                self._live.stop()
                self._live = None


class Step:
    """A running step; `said` is the text of its final line, and `watch` is called with the current activity."""

    def __init__(self, said: str) -> None:
        self.said = said
        self.watch: Callable[[str], None] = lambda now: None
