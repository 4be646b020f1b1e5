"""What an app's own code has done wrong: what the exception says, and the file and line of the team's code that it came through.

Spark reports an exception of a Python worker as text: the worker's traceback stands in a message of Java's, which often stands in another
one of Python's. Of an exception with a cause, the text has the cause's traceback first.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.jobs.stream.task_errors import first_line
from penstock.sizing.errors import Place

_TRACEBACK = "Traceback (most recent call last):"
# Source: Python's traceback module, which formats each frame so.
_FRAME = re.compile(r'^\s*File "(?P<file>[^"]+)", line (?P<line>\d+)')
# Source: as above, between the traceback of a cause and that of the exception that was raised for it.
_RAISED_FOR_IT = (
    "The above exception was the direct cause of the following exception:",
    "During handling of the above exception, another exception occurred:",
)
_CAUSED_BY = "Caused by: "
# Of a Java exception's text, where its stack begins.
_JAVA_STACK = re.compile(r"^\s+(at |\.\.\. \d+ more)")
_OF_OTHERS = frozenset({"site-packages", "dist-packages"})


@dataclass(frozen=True)
class OwnCode:
    """Files that belong to a job's app.

    Args:
        folders: of the spec and of the app path, in which the team's modules lie.
        app: file of the app's module, which may lie elsewhere.
    """

    folders: tuple[Path, ...]
    app: Path | None = None

    def has(self, file: str) -> bool:
        """Whether a file is the team's own, not that of an installed package."""
        path = Path(file)
        if self.app is not None and path == self.app:
            return True
        if (
            not path.is_absolute()
            or _OF_OTHERS & set(path.parts)
            or any(path.is_relative_to(folder / "penstock") for folder in self.folders)
        ):
            return False
        return any(one.is_relative_to(folder) for folder in self.folders for one in (path, path.resolve()))

    def last(self, frames: Iterable[tuple[str, int]]) -> Place | None:
        """The last place of these in the team's code."""
        own = [Place(file=file, line=line) for file, line in frames if self.has(file)]
        return own[-1] if own else None


@dataclass(frozen=True)
class RootCause:
    """An exception in one line.

    Args:
        text: what it says, ``ZeroDivisionError: division by zero``.
        at: where in the team's code; None if it came through none.
    """

    text: str
    at: Place | None = None

    def __str__(self) -> str:
        """The text, and the place if there is one."""
        return f"{self.text}, at {self.at}" if self.at else self.text


def of_exception(error: BaseException, own: OwnCode) -> RootCause:
    """The cause of an exception that was raised in this process."""
    text = f"{type(error).__name__}: {first_line(error)}"
    if isinstance(error, SyntaxError) and error.filename and own.has(error.filename):
        return RootCause(text, Place(file=error.filename, line=error.lineno))
    return RootCause(text, own.last((frame.filename, frame.lineno or 0) for frame in traceback.extract_tb(error.__traceback__)))


def of_message(message: str, own: OwnCode) -> RootCause | None:
    """The cause in Spark's message of a failure; None if the message names none beyond its first line."""
    lines = message.splitlines()
    chains = [[_of_worker(lines[number + 1 :], own) for number in chain] for chain in _chains(lines)]
    # The others are of Spark's own code, on the way to the one that asks.
    with_place = [found for chain in chains if (found := [cause for cause in chain if cause.at is not None])]
    if with_place or chains:
        # What the code has raised last, having seen its causes.
        return (with_place or chains)[0][-1]
    causes = [line.partition(_CAUSED_BY)[2] for line in lines if _CAUSED_BY in line]
    return RootCause(causes[-1]) if causes else None


def _chains(lines: Sequence[str]) -> list[list[int]]:
    """The lines with which tracebacks begin, those of an exception and of its causes together, the causes first."""
    chains: list[list[int]] = []
    last = ""
    for number, line in enumerate(lines):
        if line.strip().endswith(_TRACEBACK):
            if last in _RAISED_FOR_IT and chains:
                chains[-1].append(number)
            else:
                chains.append([number])
        last = line.strip() or last
    return chains


def _of_worker(lines: Sequence[str], own: OwnCode) -> RootCause:
    """Of the lines after a traceback's first."""
    frames: list[tuple[str, int]] = []
    for line in lines:
        if (frame := _FRAME.match(line)) is not None:
            frames.append((frame["file"], int(frame["line"])))
        elif line.strip() and not line.startswith(" "):
            return RootCause(line.strip(), own.last(frames))
        elif _JAVA_STACK.match(line):
            break
    return RootCause("an exception without a message", own.last(frames))
