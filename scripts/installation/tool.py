"""A downloading tool: Maven, npm or pip as a supervised process, and the end of its output if it fails."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from penstock.scripts.process.supervised import SupervisedProcess

_POLL_S = 0.1
# npm's warnings and pip's progress bars are not progress lines.
_NO_PROGRESS = re.compile(r"^npm warn | eta ")
_COLOURS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")

Progress = Callable[[str], None]


class Ended(NamedTuple):
    """How a tool ended.

    Args:
        code: its exit code; None if it took too long and was ended.
        said: the end of its output.
    """

    code: int | None
    said: str


def run(
    command: Sequence[str | Path],
    *,
    environment: Mapping[str, str],
    log: Path,
    cwd: Path | None = None,
    limit_s: float | None = None,
    progress: Progress = lambda said: None,
) -> Ended:
    """Runs a tool to its end. It ends with this process, however this one ends.

    Args:
        command: its arguments.
        environment: its whole environment.
        log: the file for its output, emptied first.
        cwd: its working folder.
        limit_s: time limit in seconds; None: no limit.
        progress: called with each progress line.

    Raises:
        CommandNotStarted: RUN-001.
    """
    log.unlink(missing_ok=True)
    until_s, said = (None if limit_s is None else time.monotonic() + limit_s), ""
    # Like Ctrl-C: pip and npm then clean up.
    with SupervisedProcess(command, env=environment, log=log, cwd=cwd, grace_s=5, ask=signal.SIGINT) as process:
        while process.alive() and (until_s is None or time.monotonic() < until_s):
            line = _COLOURS.sub("", process.tail(1)).strip()[:100]
            if line != said and not _NO_PROGRESS.search(line):
                said = line
                progress(said)
            time.sleep(_POLL_S)
        return Ended(process.returncode, _COLOURS.sub("", process.tail(15)))
