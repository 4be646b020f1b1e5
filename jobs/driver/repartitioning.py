"""State in another number of shuffle partitions, by Spark's offline repartition (4.2 and later).

Spark fixes the number in a checkpoint's first micro-batch. The repartition reads the state of the last micro-batch, N, writes it in the
other number of partitions, and commits that as micro-batch N+1 with the offsets of N. It changes a checkpoint in place, and so is only done
to one that has been filled with a savepoint and on which no query has started yet: what the savepoint was taken of stays as it is. A
driver that ends meanwhile leaves a checkpoint that the next one fills again (`penstock.jobs.savepoints.starting`).

Source: Spark 4.3.0, StreamingCheckpointManager.repartition and OfflineStateRepartitionRunner.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from penstock.jobs.driver.fixed_parallelism import FixedParallelism
from penstock.jobs.driver.repartitionable_state import not_repartitioned
from penstock.jobs.storage.checkpoint import Checkpoint
from penstock.jobs.stream.task_errors import first_line

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The last ones are of the reader of state, which does not know every operator either.
_REFUSED = ("STATE_REPARTITION_INVALID_CHECKPOINT", "STATE_REPARTITION_INVALID_PARAMETER", "STDS_")


def repartition(session: SparkSession, checkpoint: Checkpoint, fixed: FixedParallelism) -> None:
    """Repartitions the state of a query, and records the micro-batch that this is.

    Args:
        session: with the settings of the job.
        checkpoint: of the query, on which nothing runs.
        fixed: the number of shuffle partitions that it has, and the one that it gets.

    Raises:
        StateNotRepartitioned: JOB-109, Spark can't repartition it.
        PenstockError: JOB-008, JOB-009, JOB-081, JOB-082.
    """
    last = checkpoint.last_record()
    try:
        session._streamingCheckpointManager.repartition(checkpoint.uri, fixed.asked)
    except PySparkException as error:
        condition = error.getCondition() or ""
        if not condition.startswith(_REFUSED):
            raise
        raise not_repartitioned(checkpoint.uri, fixed, first_line(error)) from error
    nothing: Mapping[str, object] = {"rows_in": {}, "tags": {}, "tolerated": {}}
    checkpoint.record(last.model_copy(update={"batch": last.batch + 1, "token": checkpoint.token, **nothing}))
