"""Go's ``sort.Slice``, which is not stable: its order of equal elements determines which claim Karpenter tries first.

Source: Go 1.26 (package sort), a pattern-defeating quicksort with an insertion sort for up to 12 elements. The order of equal elements
has been the same since Go 1.19.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import compress, islice
from operator import lt
from typing import Generic, TypeVar

K = TypeVar("K", int, float)
T = TypeVar("T")

_MAX_INSERTION = 12
_SHORTEST_NINTHER = 50
_SHORTEST_SHIFTING = 50
_MAX_STEPS = 5
_MAX_SWAPS = 12
_MASK_64 = (1 << 64) - 1


def sort_slice(keys: list[K], items: list[T]) -> None:
    """Sorts both lists in place by ascending key, with equal keys in Go's order.

    Args:
        keys: keys to compare.
        items: items of the keys, of the same length.
    """
    _Sort(keys, items).run(0, len(keys), len(keys).bit_length())


class _Sort(Generic[K, T]):
    """One sort: the elements, and Go's steps on them."""

    def __init__(self, keys: list[K], items: list[T]) -> None:
        self._keys: list[K] = keys
        self._items: list[T] = items

    def run(self, start: int, end: int, limit: int) -> None:  # noqa: C901 - Go's own steps, in Go's own order
        keys = self._keys
        balanced = partitioned = True
        while True:
            length = end - start
            if length <= _MAX_INSERTION:
                self._insertion_sort(start, end)
                return
            if limit == 0:
                self._heap_sort(start, end)
                return
            if not balanced:
                self._break_patterns(start, end)
                limit -= 1
            pivot, swaps = self._choose_pivot(start, end)
            if swaps == _MAX_SWAPS:
                self._reverse(start, end)
                pivot, swaps = (end - 1) - (pivot - start), 0
            if balanced and partitioned and swaps == 0 and self._partial_insertion_sort(start, end):
                return
            if start > 0 and not keys[start - 1] < keys[pivot]:
                start = self._partition_equal(start, end, pivot)
                continue
            middle, partitioned = self._partition(start, end, pivot)
            left, right = middle - start, end - middle
            balanced = min(left, right) >= length // 8
            if left < right:
                self.run(start, middle, limit)
                start = middle + 1
            else:
                self.run(middle + 1, end, limit)
                end = middle

    def _swap(self, one: int, other: int) -> None:
        keys, items = self._keys, self._items
        keys[one], keys[other] = keys[other], keys[one]
        items[one], items[other] = items[other], items[one]

    def _move(self, index: int, to: int) -> None:
        """Moves one element past its neighbours, equivalent to that many swaps."""
        self._keys.insert(to, self._keys.pop(index))
        self._items.insert(to, self._items.pop(index))

    def _insertion_sort(self, start: int, end: int) -> None:
        keys = self._keys
        for index in range(start + 1, end):
            if keys[index] < keys[index - 1]:
                self._move(index, bisect_right(keys, keys[index], start, index))

    def _partial_insertion_sort(self, start: int, end: int) -> bool:
        keys = self._keys
        index = start + 1
        for _ in range(_MAX_STEPS):
            descents = map(lt, islice(keys, index, end), islice(keys, index - 1, end - 1))
            index = next(compress(range(index, end), descents), end)
            if index == end:
                return True
            if end - start < _SHORTEST_SHIFTING:
                return False
            self._swap(index, index - 1)
            if index - start >= 2:
                self._shift_left(start, index - 1)
            if end - index >= 2:
                self._shift_right(index, end)
        return False

    def _shift_left(self, start: int, index: int) -> None:
        # Earlier elements are already in order, and those before `start` are not greater.
        to = bisect_right(self._keys, self._keys[index], start, index)
        if to != index:
            self._move(index, to)

    def _shift_right(self, index: int, end: int) -> None:
        key = self._keys[index]
        stops = map(key.__le__, islice(self._keys, index + 1, end))
        to = next(compress(range(index, end), stops), end - 1)
        if to != index:
            self._move(index, to)

    def _partition(self, start: int, end: int, pivot: int) -> tuple[int, bool]:
        keys = self._keys
        self._swap(start, pivot)
        key = keys[start]
        low, high = start + 1, end - 1
        first = True
        while True:
            while low <= high and keys[low] < key:
                low += 1
            while low <= high and not keys[high] < key:
                high -= 1
            if low > high:
                break
            self._swap(low, high)
            first, low, high = False, low + 1, high - 1
        self._swap(high, start)
        return high, first

    def _partition_equal(self, start: int, end: int, pivot: int) -> int:
        keys = self._keys
        self._swap(start, pivot)
        key = keys[start]
        low, high = start + 1, end - 1
        while True:
            while low <= high and not key < keys[low]:
                low += 1
            while low <= high and key < keys[high]:
                high -= 1
            if low > high:
                return low
            self._swap(low, high)
            low, high = low + 1, high - 1

    def _choose_pivot(self, start: int, end: int) -> tuple[int, int]:
        """The pivot's index, and the number of swaps."""
        length = end - start
        one, two, three = (start + length // 4 * quarter for quarter in (1, 2, 3))
        swaps = 0
        if length >= _SHORTEST_NINTHER:
            one, swaps = self._median(one - 1, one, one + 1, swaps)
            two, swaps = self._median(two - 1, two, two + 1, swaps)
            three, swaps = self._median(three - 1, three, three + 1, swaps)
        return self._median(one, two, three, swaps)

    def _median(self, one: int, two: int, three: int, swaps: int) -> tuple[int, int]:
        keys = self._keys
        if keys[two] < keys[one]:
            one, two, swaps = two, one, swaps + 1
        if keys[three] < keys[two]:
            two, three, swaps = three, two, swaps + 1
        if keys[two] < keys[one]:
            one, two, swaps = two, one, swaps + 1
        return two, swaps

    def _reverse(self, start: int, end: int) -> None:
        self._keys[start:end] = self._keys[start:end][::-1]
        self._items[start:end] = self._items[start:end][::-1]

    def _break_patterns(self, start: int, end: int) -> None:
        length = end - start
        modulus = 1 << length.bit_length()
        random = length
        for index in range(start + (length // 4) * 2 - 1, start + (length // 4) * 2 + 2):
            random ^= (random << 13) & _MASK_64
            random ^= random >> 7
            random ^= (random << 17) & _MASK_64
            other = random & (modulus - 1)
            self._swap(index, start + (other - length if other >= length else other))

    def _heap_sort(self, start: int, end: int) -> None:
        count = end - start
        for low in range((count - 1) // 2, -1, -1):
            self._sift_down(low, count, start)
        for index in range(count - 1, -1, -1):
            self._swap(start, start + index)
            self._sift_down(0, index, start)

    def _sift_down(self, low: int, high: int, first: int) -> None:
        keys, root = self._keys, low
        while (child := 2 * root + 1) < high:
            if child + 1 < high and keys[first + child] < keys[first + child + 1]:
                child += 1
            if not keys[first + root] < keys[first + child]:
                return
            self._swap(first + root, first + child)
            root = child
