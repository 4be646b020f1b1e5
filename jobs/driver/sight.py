"""A query as Spark shows it: what its stream does, and the stages of its running jobs.

Spark runs the jobs of a query, and those of its sinks, in a job group that is named by the run's id.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

# Of Spark 4.3.0's MicroBatchExecution, between two triggers: "Waiting for next trigger", "Waiting for data to arrive".
_WAITING = "Waiting for "
# What a task has done so far, as executors report it with their heartbeats while the task runs: getters of StageData.
_WORK = ("inputRecords", "outputRecords", "shuffleReadRecords", "shuffleWriteRecords", "memoryBytesSpilled", "diskBytesSpilled")
_MOST_TASKS = 1000


@dataclass(frozen=True)
class StageSight:
    """A stage of a running job.

    Args:
        number: of the stage.
        attempt: of the stage.
        name: what Spark calls it: the call that has started it.
        tasks: of the stage.
        running: tasks that run.
        ended: tasks that have succeeded.
        failed: tasks that have failed.
        work: counters of what its tasks have done.
    """

    number: int
    attempt: int
    name: str
    tasks: int
    running: int
    ended: int
    failed: int
    work: tuple[int, ...]

    def __str__(self) -> str:
        counts = f"{self.running} of {self.tasks} tasks running, {self.ended} ended, {self.failed} failed"
        return f"stage {self.number} ({self.name}): {counts}"


@dataclass(frozen=True)
class Sight:
    """A query at one time. Two that are equal show no progress.

    Args:
        look: number of the look for a query that waits for its next trigger, so that none equals another; else 0.
        doing: what its stream does, in Spark's words.
        job: number of its last job; -1: none yet.
        stages: of its running jobs that have tasks.
    """

    look: int
    doing: str
    job: int = -1
    stages: tuple[StageSight, ...] = ()


class Sights:
    """Looks at the queries of a session.

    Args:
        session: of the queries.
    """

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._looks = 0

    def of(self, query: StreamingQuery) -> Sight:
        """The query now. Raises what py4j raises if the JVM has died."""
        self._looks += 1
        status = query.status
        doing = str(status["message"])
        if not status["isTriggerActive"] and doing.startswith(_WAITING):
            return Sight(self._looks, doing)
        tracker = self._context._jsc.statusTracker()
        jobs = self._numbers(tracker.getJobIdsForGroup(str(query.runId)))
        active = set(self._numbers(tracker.getActiveJobIds())).intersection(jobs)
        stages = {number for job in active for number in self._stages_of(tracker, job)}
        seen = [self._stage(tracker, number) for number in sorted(stages)]
        return Sight(0, doing, max(jobs, default=-1), tuple(stage for stage in seen if stage is not None))

    def executors(self, stage: StageSight) -> list[str]:
        """Ids of the executors that run tasks of a stage; ``driver`` in local mode."""
        tasks = self._store.taskList(stage.number, stage.attempt, _MOST_TASKS)
        running = (tasks.apply(number) for number in range(tasks.size()))
        return sorted({str(task.executorId()) for task in running if task.status() == "RUNNING"})

    def threads(self, executor: str) -> str:
        """Stacks of an executor's threads that run tasks."""
        return self._stacks(executor, "Executor task launch worker")

    def stream(self, query: StreamingQuery | None) -> str:
        """Stack of the driver's thread that runs a query; None: those of all queries."""
        # Its name has the query's and both ids. Source: Spark 4.3.0, StreamExecution.
        return self._stacks("driver", f"runId = {query.runId}" if query is not None else "stream execution thread")

    def _stacks(self, executor: str, named: str) -> str:
        """Stacks of the threads whose name contains a text."""
        dump = self._context._jsc.sc().getExecutorThreadDump(executor)
        stacks = [str(stack.toString()) for stack in dump.get()] if dump.isDefined() else []
        return "\n".join(stack for stack in stacks if named in stack.partition("\n")[0])

    def _stage(self, tracker: Any, number: int) -> StageSight | None:
        info = tracker.getStageInfo(number)
        if info is None:
            return None
        data = self._store.lastStageAttempt(number)
        work = tuple(int(getattr(data, counter)()) for counter in _WORK)
        running, ended, failed = info.numActiveTasks(), info.numCompletedTasks(), info.numFailedTasks()
        return StageSight(number, info.currentAttemptId(), info.name(), info.numTasks(), running, ended, failed, work)

    def _stages_of(self, tracker: Any, job: int) -> list[int]:
        info = tracker.getJobInfo(job)
        return [] if info is None else self._numbers(info.stageIds())

    def _numbers(self, array: Any) -> list[int]:
        """The numbers of an array of Java's, read at once: element by element each would be a call."""
        jvm: Any = self._context._jvm
        numbers: list[int] = json.loads(jvm.java.util.Arrays.toString(array))
        return numbers

    @property
    def _context(self) -> Any:
        return self._session.sparkContext

    @property
    def _store(self) -> Any:
        return self._context._jsc.sc().statusStore()
