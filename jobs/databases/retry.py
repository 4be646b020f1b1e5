"""Retries while a database is unavailable, for a limited time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

# A failover of a managed database takes up to a minute (Amazon RDS User Guide, "Failover process": typically 60 to 120 s for a Multi-AZ
# instance, under 35 s for a cluster).
RETRY_LIMIT_S = 120.0
_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 5.0

Result = TypeVar("Result")


def with_retries(attempt: Callable[[], Result], transient: Callable[[Exception], bool], retry_limit_s: float = RETRY_LIMIT_S) -> Result:
    """The result of an attempt, retried after transient errors.

    Args:
        attempt: must be idempotent.
        transient: whether an error is transient.
        retry_limit_s: no attempt starts later than this after the first.

    Raises:
        Exception: that of the last attempt.
    """
    until_s = time.monotonic() + retry_limit_s
    pause_s = _FIRST_PAUSE_S
    while True:
        try:
            return attempt()
        except Exception as error:
            if not transient(error) or time.monotonic() + pause_s > until_s:
                raise
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
