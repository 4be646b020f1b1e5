"""Responses of the endpoint in the webhook's tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

ASKED: Counter[str] = Counter()


def answer(method: str, path: str, headers: Mapping[str, str], body: bytes) -> tuple[int, str]:
    """200, except for paths that request another status."""
    ASKED[path] += 1
    if path == "/busy-twice":
        return {1: 503, 2: 429}.get(ASKED[path], 200), ""
    return {"/secret-path-refused": 401, "/broken": 500}.get(path, 200), ""
