"""Names within AWS's length limits."""

from __future__ import annotations

import hashlib

_DIGITS = 8


def shortened(name: str, limit: int) -> str:
    """The name, or, if it is too long, its beginning with a hash of the whole name, so that names with a common prefix stay distinct.

    Args:
        name: the full name.
        limit: maximum number of characters, above 9.
    """
    if len(name) <= limit:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:_DIGITS]
    return f"{name[: limit - _DIGITS - 1].rstrip('-')}-{digest}"
