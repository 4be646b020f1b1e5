"""Names of calls: the journal of answers goes by them."""

from __future__ import annotations

import pytest

from jobs.async_io import journal


def test_calls_of_one_app_may_not_share_a_name() -> None:
    with journal.building():
        journal.declare("update")
        journal.declare("notify")
        with pytest.raises(ValueError, match=r'name = "update": other calls of the app have it'):
            journal.declare("update")


def test_an_app_that_is_built_again_has_its_names_again() -> None:
    for _ in range(2):
        with journal.building():
            journal.declare("update")
