"""From the failure of a query to the error that its job ends with, with the place in the team's code."""

from __future__ import annotations

from penstock.jobs.driver.root_cause import OwnCode, RootCause, of_exception, of_message
from penstock.jobs.errors import QueryFailed
from penstock.jobs.storage.conditional import undecided_write
from penstock.jobs.stream.task_errors import first_line, of_a_task
from penstock.sizing.errors import PenstockError


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
    cause = of_message(str(failure), own) or RootCause(first_line(failure))
    fix = "correct the app's function there" if cause.at else "check the driver's log"
    return QueryFailed(path=path, given=cause.text, fix=fix, at=cause.at)
