"""The queries of a job in one driver: started together, and ended together at boundaries of their micro-batches."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Mapping, Sequence
from functools import partial

from penstock.jobs.driver.another_writer import AnotherWriter
from penstock.jobs.driver.bounded import BoundedRun
from penstock.jobs.driver.context import DriverContext
from penstock.jobs.driver.given_up import GivenUp
from penstock.jobs.driver.lag import JobLag
from penstock.jobs.driver.planning import QueryPlan
from penstock.jobs.driver.progress import Commit
from penstock.jobs.driver.query import Query
from penstock.jobs.driver.sight import Sights
from penstock.jobs.driver.watch import Watch
from penstock.jobs.kafka.offset_commits import JointCommits, OffsetCommits
from penstock.jobs.stream import leaving


class Queries:
    """The planned queries of a job from their start to their end.

    Args:
        context: the driver's.
        plans: of the queries, in the order of their start.
        stop: set from outside to stop the job.
        ended: set when a query has ended or all are to end.
        commits: commits offsets to consumer groups; None: not configured.
        changed: whether the job has changed since its last micro-batch.
    """

    def __init__(
        self,
        context: DriverContext,
        plans: Sequence[QueryPlan],
        stop: threading.Event,
        ended: threading.Event,
        commits: OffsetCommits | None,
        *,
        changed: bool,
    ) -> None:
        self._context = context
        self._changed = changed
        self._stop = stop
        self._ended = ended
        self._names = [plan.name for plan in plans]
        job_lag, commit = JobLag(context.gauges, self._names), _commit_of(commits, plans)
        self._queries = [Query(context, plan, ended, job_lag, commit.get(plan.name)) for plan in plans]
        # In the order in which they have terminated by themselves.
        self._over: list[Query] = []

    def run(self) -> bool:
        """Runs the queries until all have terminated: if one fails, the others finish their micro-batch.

        Returns:
            Whether they must be planned and started again: a topic got more partitions, or a bounded input has been read and what is open
            is to be closed.

        Raises:
            AnotherWriter: another driver, whose lease this one has taken over, has written to Spark's logs.
            GivenUp: a micro-batch that another executor may be able to run.
            PenstockError: a query has failed.
        """
        with contextlib.ExitStack() as reporting:
            for query in self._queries:
                reporting.enter_context(query.reporting())
            for query in self._queries:
                query.check()
            leaving.forget(self._context.session)
            # The start offsets are decided; reported before the queries start, so that this comes before any other event of theirs.
            for query in self._queries:
                query.announce(self._names)
            with self._watch():
                try:
                    for query in self._queries:
                        query.start()
                    with self._context.readiness.reported(len(self._queries), changed=self._changed):
                        self._wait()
                finally:
                    # Still watched: after the failure of a query, one that hangs would never end.
                    self._end()
            return self._result()

    def _watch(self) -> Watch:
        context = self._context
        return Watch(self._queries, Sights(context.session), context.configuration.progress_timeout_s, self._stop, context.hung)

    def _wait(self) -> None:
        """Returns when all have terminated, or the rest is to end."""
        while True:
            self._ended.wait()
            # What is looked at from here on has happened before, or sets it again.
            self._ended.clear()
            self._over += [query for query in self._queries if query.over and query not in self._over]
            if self._to_end or len(self._over) == len(self._queries):
                return
            for query in self._over:
                if query.has_closed:
                    query.close()

    @property
    def _to_end(self) -> bool:
        """Whether the job is to stop, has lost its lease, or a query has failed. A bounded query ends by itself; others need not."""
        return self._stop.is_set() or self._context.lease.lost or not all(query.finished for query in self._over)

    def _end(self) -> None:
        if self._stop.is_set():
            self._context.lease.stopping()
        for query in self._queries:
            query.stopping()
        for query in self._queries:
            query.stop()

    def _result(self) -> bool:
        failures: list[Exception] = []
        well: list[Query] = []
        again = False
        for query in [*self._over, *(query for query in self._queries if query not in self._over)]:
            try:
                grew = query.result()
            except Exception as failure:
                failures.append(failure)
            else:
                again = again or grew
                well += [] if grew else [query]
        self._raise(failures, well)
        if again and not self._stop.is_set():
            return True
        for query in self._queries:
            query.close()
        if self._context.bounded is not None and not again and not any(query.stopped for query in self._queries):
            self._finish(self._context.bounded)
        return False

    def _finish(self, bounded: BoundedRun) -> None:
        """Ends the bounded run, once the sinks of all queries have closed everything."""
        self._context.lease.check()
        bounded.finish()
        for query in self._queries:
            query.report_finished()

    def _raise(self, failures: Sequence[Exception], well: Sequence[Query]) -> None:
        """Raises the first failure; one after which the queries may start again only if there is no other."""
        final = [failure for failure in failures if not isinstance(failure, AnotherWriter | GivenUp)]
        if final and not self._context.lease.lost:
            for query in well:
                _close_too(query)
        for failure in [*final, *failures]:
            raise failure


def _close_too(query: Query) -> None:
    """Closes the sinks of a query that has not failed, while the failure of another is reported."""
    try:
        query.close()
    except Exception as error:
        print(f"WARN the sinks of a query are not closed, and will be at the next start: {error}", file=sys.stderr)


def _commit_of(commits: OffsetCommits | None, plans: Sequence[QueryPlan]) -> Mapping[str, Commit]:
    """Name of a query -> what commits its offsets; empty if none are committed."""
    if commits is None:
        return {}
    joint = JointCommits(commits, {plan.name: plan.topics for plan in plans})
    return {plan.name: partial(joint.committed, plan.name) for plan in plans}
