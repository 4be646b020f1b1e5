"""Tells who has started this command detached that it is ready."""

from __future__ import annotations

import os
from pathlib import Path

# Another one than that of a driver's pod, which a driver of this command would take for its own.
READY_VARIABLE = "PENSTOCK_DETACHED_READY_FILE"


def awaited() -> bool:
    """Whether this command runs detached."""
    return bool(os.environ.get(READY_VARIABLE))


def ready() -> None:
    """Says that this command does what it was started for; nothing in a command that is attached to a terminal."""
    file = os.environ.get(READY_VARIABLE)
    if file and Path(file).parent.is_dir():
        Path(file).touch()
