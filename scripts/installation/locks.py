"""Where the locks are that an installed package fetches from: beside this module, as its data."""

from __future__ import annotations

import hashlib
from importlib.resources import files
from pathlib import Path


def folder() -> Path:
    """The folder of the locks, in a checkout and in an installed package alike."""
    return Path(str(files("penstock.scripts.installation"))) / "data"


def key(text: bytes) -> str:
    """What an entry of the cache is named by.

    Args:
        text: all that decides on its content.

    Returns:
        The beginning of its SHA-256, 16 hexadecimal digits.
    """
    return hashlib.sha256(text).hexdigest()[:16]
