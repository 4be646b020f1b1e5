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
    """

    def __init__(self, after: int, fault: PenstockError) -> None:
        super().__init__()
        self.after = after
        self.fault = fault


def is_given_up(failure: BaseException) -> bool:
    """Whether Spark failed for this reason."""
    return _SIGN in str(failure)


class Repetitions:
    """Decides whether a micro-batch that Spark has given up is run again."""

    def __init__(self) -> None:
        self._after: int | None = None
        self._tries = 0

    def again(self, given_up: GivenUp) -> None:
        """Returns if the query is to be started again from the checkpoint.

        Raises:
            PenstockError: the micro-batch was given up too often.
        """
        self._tries = self._tries + 1 if given_up.after == self._after else 1
        self._after = given_up.after
        if self._tries > _TRIES:
            raise given_up.fault from given_up
        print("WARN Spark has given up a micro-batch after the loss of an executor; it is run again from the checkpoint", file=sys.stderr)
