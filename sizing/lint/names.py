"""Suggestions for misspelled names."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable


def nearest(name: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """The most similar known name, or an empty text."""
    close = difflib.get_close_matches(name, sorted(known), n=1, cutoff=cutoff)
    return close[0] if close else ""


def meant(name: str, known: Iterable[str], otherwise: str, cutoff: float = 0.6) -> str:
    """A fix: the most similar name, or the alternative."""
    close = nearest(name, known, cutoff)
    return f"did you mean {close}?" if close else otherwise


def listed(names: Collection[str], most: int = 8) -> str:
    """Joins names for a message, truncating long lists."""
    shown = sorted(names)
    return ", ".join(shown[:most]) + (f" and {len(shown) - most} more" if len(shown) > most else "")
