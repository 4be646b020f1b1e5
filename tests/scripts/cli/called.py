"""The command called with a user's words, in this process: starting a process takes longer than nearly all that is tested by it.

It gets streams, a folder and variables of its own, as a process has them. That it starts, what it imports, how it takes signals and streams
that are closed stays with real processes, in test_command.py and in each verb's own file.
"""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

from penstock.scripts.cli.command import main
from penstock.scripts.layout import ROOT


class Called(NamedTuple):
    """What a process would have left.

    Args:
        returncode: its exit code.
        stdout: what it printed.
        stderr: what it said beside that.
    """

    returncode: int
    stdout: str
    stderr: str


def penstock(*words: str, cwd: Path = ROOT, environment: Mapping[str, str] | None = None) -> Called:
    """Calls the command.

    Args:
        words: what stands after ``penstock``.
        cwd: where; the checkout unless given.
        environment: its variables; no PATH unless given, so that it finds no tool.
    """
    variables = {"PATH": ""} if environment is None else environment
    with _text() as (out, printed), _text() as (err, said), contextlib.chdir(cwd), patch.dict(os.environ, variables, clear=True):
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(words)
        out.flush()
        err.flush()
        return Called(code, printed.getvalue().decode("utf-8"), said.getvalue().decode("utf-8"))


@contextlib.contextmanager
def _text() -> Iterator[tuple[io.TextIOWrapper, io.BytesIO]]:
    raw = io.BytesIO()
    # Like a pipe's: UTF-8, and no line end is changed.
    with io.TextIOWrapper(raw, encoding="utf-8", newline="\n") as text:
        yield text, raw
