"""From the failure of a query to the error that its job ends with, with the place in the team's code."""

from __future__ import annotations

import re

from penstock.jobs.driver.errors import DiskFull, QueryFailed
from penstock.jobs.driver.root_cause import OwnCode, RootCause, of_exception, of_message
from penstock.jobs.storage.conditional import undecided_write
from penstock.jobs.stream.task_errors import first_line, of_a_task
from penstock.sizing.errors import PenstockError

# Source: strerror(3) of ENOSPC, which Java, RocksDB and Python say alike.
_NO_SPACE = "No space left on device"
# Source: Spark 4.3.0, TaskSetManager: "Lost task 0.3 in stage 5.0 (TID 23) (10.244.2.5 executor 2): java.io.IOException: ...".
_EXECUTOR = re.compile(r"Lost task [^(]*\(TID \d+\) \((?P<host>\S+) executor (?P<id>\w+)\)")


def as_fault(failure: Exception, path: str, own: OwnCode) -> PenstockError:
    """The error of a failed query.

    Args:
        failure: of the query, or of its micro-batch.
        path: what has failed, such as the app.
        own: the team's files.
    """
    # A failure before the micro-batch is handed over has not been examined yet.
    failure = of_a_task(failure) or undecided_write(failure) or failure
    if isinstance(failure, PenstockError):
        if failure.at is None and isinstance(failure.__cause__, Exception):
            # A function of the app that the driver calls: of a sink, or of the rows of a micro-batch.
            failure.at = of_exception(failure.__cause__, own).at
        return failure
    if _NO_SPACE in str(failure):
        return _disk_full(str(failure), path)
    cause = of_message(str(failure), own) or RootCause(first_line(failure))
    fix = "correct the app's function there" if cause.at else "check the driver's log"
    return QueryFailed(path=path, given=cause.text, fix=fix, at=cause.at)


def _disk_full(message: str, path: str) -> DiskFull:
    """Of a task's executor, or of the driver."""
    lost = _EXECUTOR.search(message)
    who = "executor" if lost else "driver"
    said = next(line.strip() for line in message.splitlines() if _NO_SPACE in line)
    if lost:
        said = f"executor {lost['id']} on {lost['host']}: {said.rpartition(lost[0])[2].strip(' :')}"
    fix = f"raise {who}.ephemeralStorage in the spec, or the environment's rootVolume if something else has filled the node's disk"
    return DiskFull(path=path, given=said, need="room for state, shuffles and spilled rows", fix=fix)
