"""What a worker remembers of the rows that it has looked up, and of those that are not there."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from typing import Any

Found = Mapping[str, Any] | None
# Python's workers outlive their tasks, and what is remembered outlives them too: table -> its cache.
_CACHES: dict[Hashable, RowCache] = {}


class RowCache:
    """Rows by key, each for a time; the longest unused goes first.

    Args:
        ttl_ms: for how long a row, or that there is none, may be used.
        entries: at most.
        now_s: a clock in seconds that never goes back.
    """

    def __init__(self, ttl_ms: int, entries: int, now_s: Callable[[], float] = time.monotonic) -> None:
        self._ttl_s = ttl_ms / 1000
        self._entries = entries
        self._now_s = now_s
        self._rows: OrderedDict[str, tuple[float, Found]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._rows)

    def get(self, key: str) -> tuple[bool, Found]:
        """Whether something is known of a key, and the row; None where there is none."""
        known = self._rows.get(key)
        if known is None:
            return False, None
        until_s, row = known
        if until_s <= self._now_s():
            del self._rows[key]
            return False, None
        self._rows.move_to_end(key)
        return True, row

    def put(self, key: str, row: Found) -> None:
        """Remembers what was found, from now on."""
        self._rows[key] = (self._now_s() + self._ttl_s, row)
        self._rows.move_to_end(key)
        while len(self._rows) > self._entries:
            self._rows.popitem(last=False)


def of_this_worker(identity: Hashable, ttl_ms: int, entries: int) -> RowCache:
    """The worker's cache of a table.

    Args:
        identity: of the table and of all that its cache depends on.
        ttl_ms: see `RowCache`.
        entries: see `RowCache`.
    """
    return _CACHES.setdefault((identity, ttl_ms, entries), RowCache(ttl_ms, entries))
