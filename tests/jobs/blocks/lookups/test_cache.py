"""A worker's cache of a lookup table."""

from __future__ import annotations

from penstock.jobs.blocks.lookups.cache import RowCache, of_this_worker


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_row_and_its_absence_are_cached_for_a_time() -> None:
    clock = Clock()
    cache = RowCache(ttl_ms=10_000, entries=10, now_s=clock)
    cache.put("a", {"n": 1})
    clock.now = 5
    cache.put("gone", None)
    assert (cache.get("a"), cache.get("gone"), cache.get("new")) == ((True, {"n": 1}), (True, None), (False, None))
    clock.now = 10
    assert (cache.get("a"), cache.get("gone")) == ((False, None), (True, None))
    assert len(cache) == 1


def test_the_longest_unused_goes_first() -> None:
    cache = RowCache(ttl_ms=10_000, entries=2)
    for key in "ab":
        cache.put(key, {})
    cache.get("a")
    cache.put("c", {})
    assert [key for key in "abc" if cache.get(key)[0]] == ["a", "c"]


def test_without_entries_nothing_is_remembered() -> None:
    cache = RowCache(ttl_ms=10_000, entries=0)
    cache.put("a", {})
    assert cache.get("a") == (False, None)


def test_a_worker_has_one_cache_for_each_table() -> None:
    assert of_this_worker("one", 1, 1) is of_this_worker("one", 1, 1)
    assert of_this_worker("one", 1, 1) is not of_this_worker("two", 1, 1)
