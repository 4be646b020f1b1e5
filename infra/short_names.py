"""Names within the lengths that AWS takes."""

from __future__ import annotations

import hashlib

_DIGITS = 8


def shortened(name: str, limit: int) -> str:
    """The name, or where it is too long its beginning and a hash of it all, so that two names that begin alike stay two.

    Args:
        name: as it should be.
        limit: the most characters that it may have, above 9.
    """
    if len(name) <= limit:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:_DIGITS]
    return f"{name[: limit - _DIGITS - 1].rstrip('-')}-{digest}"
