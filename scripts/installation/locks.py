"""Where the locks of an installed package are: beside this module, as package data."""

from __future__ import annotations

import hashlib
from importlib.resources import files
from pathlib import Path


def folder() -> Path:
    """The folder of the locks, in a checkout and in an installed package alike."""
    return Path(str(files("penstock.scripts.installation"))) / "data"


def key(text: bytes) -> str:
    """The name of a cache entry's folder.

    Args:
        text: everything that determines its content.

    Returns:
        The beginning of its SHA-256, 16 hexadecimal digits.
    """
    return hashlib.sha256(text).hexdigest()[:16]
