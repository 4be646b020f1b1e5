"""What is known of a query's stored state without Spark, in a checkpoint and in a savepoint alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from penstock.jobs.storage.checkpoint import Checkpoint
from penstock.jobs.storage.offset_log import FixedSettings


class StoredState(NamedTuple):
    """The state of a query.

    Args:
        settings: that its checkpoint has fixed.
        names: lists the objects of its checkpoint.
        content: the content of one of them; None if it does not exist.
    """

    settings: FixedSettings
    names: Callable[[], Iterable[str]]
    content: Callable[[str], bytes | None]

    @classmethod
    def of(cls, checkpoint: Checkpoint) -> StoredState:
        """That in the checkpoint of a query.

        Raises:
            BucketUnreachable: JOB-009.
        """
        return cls(checkpoint.fixed_settings(), checkpoint.listed, checkpoint.content)
