"""Names that an app assigns while it is built: of calls, which identify their journals, and of tags."""

from __future__ import annotations

import pytest

from penstock.jobs.blocks.calls import journal
from penstock.jobs.stream.declaration import building, name_tag


def test_calls_of_one_app_may_not_share_a_name() -> None:
    with building():
        journal.declare("update")
        journal.declare("notify")
        with pytest.raises(ValueError, match=r'name = "update": already used by another call of the app'):
            journal.declare("update")


def test_an_app_that_is_built_again_has_its_names_again() -> None:
    for _ in range(2):
        with building() as names:
            journal.declare("update")
            name_tag("refunds", "stream.divert")
            name_tag("refunds", "another block")
        assert (names.calls, names.tags) == ({"update"}, {"refunds": "stream.divert"})


def test_a_block_outside_of_an_app_names_nothing() -> None:
    for _ in range(2):
        journal.declare("update")
        name_tag("refunds", "stream.divert")
    with building() as names:
        pass
    assert (names.calls, names.tags) == (set(), {})
