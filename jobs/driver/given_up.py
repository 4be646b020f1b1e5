"""A micro-batch that Spark gives up because a map stage ran again with another result; it is run again from the checkpoint.

Spark compares the rows of a map stage that runs again with those of the first time, in any order. If they differ, and a task that read the
first ones has ended, it fails: the tasks to come would read others. The rows need not be wrong to differ. Sinks that keep the order of a
key's rows number them, and after a shuffle a lost partition is computed again in another order. So the whole micro-batch runs again, as
after a restart, and sinks find what they have already written.
Source: Spark 4.3.0, ``spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch``.
"""

from __future__ import annotations

import sys

from penstock.sizing.errors import PenstockError

# Source: Spark 4.3.0, DAGScheduler.
_SIGN = "A shuffle map stage with indeterminate output was failed and retried"
# Times in a row that one micro-batch is run again; each time an executor was lost.
_TRIES = 5


class GivenUp(Exception):
    """Spark has given up a micro-batch.

    Args:
        after: number of the last micro-batch with a record.
        fault: what the job fails with if it is not run again.
        query: name of the query.
    """

    def __init__(self, after: int, fault: PenstockError, query: str = "") -> None:
        super().__init__()
        self.after = after
        self.fault = fault
        self.query = query


def is_given_up(failure: BaseException) -> bool:
    """Whether Spark failed for this reason."""
    return _SIGN in str(failure)


class Repetitions:
    """Decides whether a micro-batch that Spark has given up is run again."""

    def __init__(self) -> None:
        # Query -> its last micro-batch that was given up, by the one before it, and how often.
        self._last: dict[str, tuple[int, int]] = {}

    def again(self, given_up: GivenUp) -> None:
        """Returns if the queries are to be started again from their checkpoints.

        Raises:
            PenstockError: the micro-batch was given up too often.
        """
        after, tries = self._last.get(given_up.query, (given_up.after, 0))
        tries = tries + 1 if given_up.after == after else 1
        self._last[given_up.query] = (given_up.after, tries)
        if tries > _TRIES:
            raise given_up.fault from given_up
        print("WARN Spark has given up a micro-batch after the loss of an executor; it is run again from the checkpoint", file=sys.stderr)
