"""Go's sort.Slice.

``go_sort.json.gz`` contains 120 lists of keys with few distinct values, up to 600 long, and their order after Go 1.26.8 sorted them.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from penstock.sizing.placement.go_sort import _Sort, sort_slice

RECORDED = Path(__file__).with_name("go_sort.json.gz")


def test_equal_keys_are_left_as_go_leaves_them() -> None:
    recorded = json.loads(gzip.decompress(RECORDED.read_bytes()))
    assert len(recorded) == 120
    for case in recorded:
        keys, order = list(case["keys"]), list(range(len(case["keys"])))
        sort_slice(keys, order)
        assert order == case["order"]


def test_up_to_twelve_elements_keep_the_order_of_equal_ones() -> None:
    keys, order = [1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0], list(range(12))
    sort_slice(keys, order)
    assert order == [1, 3, 5, 7, 9, 11, 0, 2, 4, 6, 8, 10]


def test_beyond_twelve_they_do_not() -> None:
    keys, order = [1, 0] * 20, list(range(40))
    sort_slice(keys, order)
    assert keys == sorted(keys)
    assert order != sorted(range(40), key=lambda index: index % 2 == 0)


@given(st.lists(st.integers(0, 5), max_size=200))
def test_any_list_comes_out_sorted_with_its_own_elements(keys: list[int]) -> None:
    order = list(range(len(keys)))
    given_keys = list(keys)
    sort_slice(keys, order)
    assert keys == sorted(given_keys) == [given_keys[index] for index in order]
    assert sorted(order) == list(range(len(keys)))


@given(st.lists(st.integers(0, 50), max_size=100))
def test_the_heap_sort_that_bad_pivots_lead_to_sorts(keys: list[int]) -> None:
    expected = sorted(keys)
    _Sort(keys, list(range(len(keys)))).run(0, len(keys), 0)
    assert keys == expected
