"""A worker's cache of looked-up rows, including misses."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from typing import Any

Found = Mapping[str, Any] | None
# Python workers outlive their tasks, and so does the cache: table -> its cache.
_CACHES: dict[Hashable, RowCache] = {}


class RowCache:
    """Rows by key with an expiry; the least recently used is evicted first.

    Args:
        ttl_ms: how long a row, or a miss, may be used.
        entries: maximum number.
        now_s: a monotonic clock in seconds.
    """

    def __init__(self, ttl_ms: int, entries: int, now_s: Callable[[], float] = time.monotonic) -> None:
        self._ttl_s = ttl_ms / 1000
        self._entries = entries
        self._now_s = now_s
        self._rows: OrderedDict[str, tuple[float, Found]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._rows)

    def get(self, key: str) -> tuple[bool, Found]:
        """Whether a key is cached, and its row; None for a miss."""
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
        """Caches what was found."""
        self._rows[key] = (self._now_s() + self._ttl_s, row)
        self._rows.move_to_end(key)
        while len(self._rows) > self._entries:
            self._rows.popitem(last=False)


def of_this_worker(identity: Hashable, ttl_ms: int, entries: int) -> RowCache:
    """The worker's cache of a table.

    Args:
        identity: of the table and of everything that its cache depends on.
        ttl_ms: see `RowCache`.
        entries: see `RowCache`.
    """
    return _CACHES.setdefault((identity, ttl_ms, entries), RowCache(ttl_ms, entries))
