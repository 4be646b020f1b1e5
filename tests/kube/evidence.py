"""Waiting for what another process is to do."""

from __future__ import annotations

import time
from collections.abc import Callable


def wait_for(result: Callable[[], bool], limit_s: float = 60) -> None:
    """Returns as soon as it is so."""
    until_s = time.monotonic() + limit_s
    while not result():
        assert time.monotonic() < until_s, "it did not come"
        time.sleep(0.02)
