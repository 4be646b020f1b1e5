"""A folder that a command works in: empty at first, and gone at its end, except for the logs of a failure."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.scripts.progress import Steps


@contextmanager
def emptied(work: Path, steps: Steps) -> Iterator[Path]:
    """The folder while it is worked in. After a failure it stays, and its place is shown; an interrupt is none.

    Args:
        work: the folder, in one that exists.
        steps: receives the line.
    """
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    try:
        yield work
    except KeyboardInterrupt:
        shutil.rmtree(work, ignore_errors=True)
        raise
    except BaseException:
        steps.line("logs", str(work))
        raise
    shutil.rmtree(work, ignore_errors=True)
