"""What the endpoint of the webhook's tests answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

ASKED: Counter[str] = Counter()


def answer(method: str, path: str, headers: Mapping[str, str], body: bytes) -> tuple[int, str]:
    """200, but for the paths that say otherwise."""
    ASKED[path] += 1
    if path == "/busy-twice":
        return {1: 503, 2: 429}.get(ASKED[path], 200), ""
    return {"/secret-path-refused": 401, "/broken": 500}.get(path, 200), ""
