"""Whether a checkpoint is that of the queries that are to go on with it: its offsets and its state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from penstock.jobs.driver.errors import SourcesDiffer, StateDiffers
from penstock.jobs.driver.source_changes import source_changes
from penstock.jobs.driver.state_changes import state_changes
from penstock.jobs.storage.query_record import QueryRecord


def checkpoint_changes(before: Mapping[str, QueryRecord], now: Mapping[str, QueryRecord]) -> Iterator[SourcesDiffer | StateDiffers]:
    """What the queries have that the checkpoint does not, or has another way.

    Args:
        before: query -> its record in the generation whose checkpoint it is; the first query's name is empty.
        now: the same of the queries that go on with it.
    """
    yield from source_changes(before, now)
    yield from state_changes(before, now)
