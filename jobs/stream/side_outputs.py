"""The side-output rows of a micro-batch: those that tasks have taken out of the stream (`penstock.jobs.stream.leaving`).

A few rows of a task come to the driver with the task's result. More than 64 KiB of them are staged in the checkpoint directory, one
object per attempt of a task:

    penstock/aside/<micro-batch>/<fencing token>/<run>/<operator>-<partition>-<attempt>.json

so that a topic that is all malformed does not fill the driver's memory. At the end of the micro-batch they are read back from there, so
the source is read only once. An object is written once and never replaced: a task may run again at any time (after a failure or a lost
executor, speculatively, or because a cached block is gone), while the driver reads. The driver takes one successful attempt of each task,
which it knows by the task's result, and only of its own run: an earlier run of the micro-batch may have split the rows differently.

Any attempt is right: all attempts have the same rows, because ``offsets/N`` fixes the micro-batch's records, its time and its watermark,
and blocks give the same rows in whatever order a shuffle delivers them. The exception is a non-deterministic expression upstream,
accepted for sinks that write at least once: two attempts may then tag a row differently, and the row may be in both outputs or in neither.

A late attempt leaves an object behind, and so does an interrupted micro-batch. They are deleted with the next micro-batch that stages rows,
and when a query starts. A driver deletes nothing with a greater token than its own.

Cost: two function calls a row at a source, one for a row that leaves. A PUT for each task with many such rows, and a LIST and a DELETE in
a micro-batch that has any; nothing in others.
"""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.jobs.stream import leaving
from penstock.jobs.stream.leaving import OPERATOR, RECORD_TYPE, Passed
from penstock.jobs.stream.task_context import current_run

if TYPE_CHECKING:
    from penstock.jobs.storage.checkpoint import Checkpoint

TAG, REASON, RECORD = "_tag", "_reason", "_record"
SCHEMA = f"{TAG} string, {REASON} string, {RECORD} {RECORD_TYPE}"
_LINE = SCHEMA.replace(RECORD_TYPE, f"{RECORD_TYPE[:-1]}, {OPERATOR}: int>")
_FOLDER = "aside/"
_STAGED = re.compile(
    r"(?P<batch>[0-9]+)/(?P<token>[0-9]+)/(?P<run>[^/]+)/(?P<operator>[0-9]+)-(?P<partition>[0-9]+)-(?P<attempt>[0-9]+)\.(json|parquet)"
)


@dataclass(frozen=True)
class SideRows:
    """The rows that the tasks of one run of a micro-batch have taken out of the stream.

    Args:
        checkpoint: with the driver's fencing token.
        run: id of the query's run.
        batch: the micro-batch's number.
        others: numbers of the operators whose rows another query writes and counts.
    """

    checkpoint: Checkpoint
    run: str
    batch: int
    others: AbstractSet[int] = frozenset()

    @classmethod
    def of_micro_batch(cls, session: SparkSession, checkpoint: Checkpoint, batch: int, others: AbstractSet[int] = frozenset()) -> SideRows:
        """Of the current micro-batch, inside it."""
        return cls(checkpoint, current_run(session), batch, others)

    def passed(self, session: SparkSession) -> Passed:
        """What the tasks have counted, once they all have run."""
        return Passed.of(session, self.run, self.batch, self.others)

    def rows(self, session: SparkSession, passed: Passed) -> DataFrame | None:
        """The rows that side outputs take, with the columns of `SCHEMA`; None if there are none.

        Args:
            session: Spark's session.
            passed: what the tasks have counted.
        """
        if not any(count.kept for count in passed.by_tag().values()):
            return None
        lines = leaving.lines(session, self.run, self.batch)
        if passed.staged:
            lines = lines.union(session.read.text(sorted(passed.staged)))
        rows = lines.select(F.from_json("line", _LINE, {"mode": "FAILFAST"}).alias("_row")).select("_row.*")
        own = rows.where(~F.col(RECORD)[OPERATOR].isin(list(self.others))) if self.others else rows
        return own.withColumn(RECORD, F.col(RECORD).dropFields(OPERATOR))

    def delete(self) -> None:
        """Deletes the staged rows, those of earlier micro-batches, and those that other runs and earlier drivers left behind.

        Raises:
            BucketUnreachable: JOB-009.
        """
        found = {f"{_FOLDER}{name}": _STAGED.fullmatch(name) for name in self.checkpoint.names(_FOLDER)}
        # The names without a token are those of a version that did not have one.
        self.checkpoint.delete_all([name for name, one in found.items() if one is None or int(one["token"]) <= self.checkpoint.token])
