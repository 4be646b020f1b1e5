"""Division of a limit among partitions."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.sizing.kafka.max_offsets import prorated
from tests.sizing.load_cases import case


def test_shares_are_those_of_the_known_answer() -> None:
    given_, expected = case("KAFKA4-maxOffsets")
    assert list(prorated(given_["limit"], given_["sizes"])) == expected


def test_nothing_waits_and_nothing_is_taken() -> None:
    assert prorated(10, [0, 0]) == (0, 0)
    assert prorated(10, []) == ()


@given(limit=st.integers(1, 10**9), backlogs=st.lists(st.integers(0, 10**12), max_size=50))
def test_no_partition_starves_and_none_gives_more_than_it_has(limit: int, backlogs: list[int]) -> None:
    for taken, backlog in zip(prorated(limit, backlogs), backlogs, strict=True):
        assert (taken > 0) == (backlog > 0)
        assert taken <= backlog
    assert sum(prorated(limit, backlogs)) <= limit + len(backlogs)
