"""The target of printed text: its width, and whether it shows colours."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from typing import NamedTuple, TextIO

# The width of tables without a terminal, and the maximum width of sentences.
PIPE_WIDTH, PROSE_WIDTH = 120, 100


class Screen(NamedTuple):
    """The target of text for people; by default a pipe or a file.

    Args:
        width: columns.
        colour: whether colours are shown.
    """

    width: int = PIPE_WIDTH
    colour: bool = False

    @property
    def prose(self) -> int:
        """The width at which sentences wrap: a wider terminal does not make them easier to read."""
        return min(self.width, PROSE_WIDTH)


def screen_of(stream: TextIO, environ: Mapping[str, str]) -> Screen:
    """The screen that a stream writes to: a terminal's own width and colours, `PIPE_WIDTH` without colours elsewhere.

    Args:
        stream: that will be written to.
        environ: variables of the process: NO_COLOR and TERM.
    """
    if not stream.isatty():
        return Screen()
    return Screen(shutil.get_terminal_size((PIPE_WIDTH, 24)).columns, colour_wanted(environ))


def colour_wanted(environ: Mapping[str, str]) -> bool:
    """Whether the user's variables allow colour: https://no-color.org, and TERM=dumb."""
    return not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"
