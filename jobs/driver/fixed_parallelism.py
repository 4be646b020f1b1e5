"""The parallelism of a query's state, which Spark fixes in the first micro-batch of its checkpoint.

Spark applies the number in the checkpoint at each start, whatever the session asks for, and says so in its log alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from penstock.jobs.spec.stage_settings import SHUFFLE_PARTITIONS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.jobs.storage.checkpoint import Checkpoint


class FixedParallelism(NamedTuple):
    """A parallelism that a checkpoint can't have.

    Args:
        asked: shuffle partitions of the session, by the spec.
        checkpoint: those that the checkpoint has, with which the query runs.
    """

    asked: int
    checkpoint: int

    def __str__(self) -> str:
        """What it means, and what can be done."""
        return (
            f"its state stays in {self.checkpoint} shuffle partitions, those of its checkpoint, instead of the {self.asked} of the spec; "
            f"set stages.stateful: {self.checkpoint} to keep them; or, with another restartNonce, upgradeMode: savepoint to have the "
            "state repartitioned, which that of a join of two streams can't be, or stateless to start with an empty checkpoint"
        )


def fixed_parallelism(session: SparkSession, checkpoint: Checkpoint) -> FixedParallelism | None:
    """How a checkpoint differs from what the session asks for; None if it does not, or has not begun.

    Args:
        session: the driver's.
        checkpoint: of a query with stateful operators.

    Raises:
        BucketUnreachable: JOB-009.
    """
    fixed, asked = checkpoint.fixed_settings().shuffle_partitions, int(str(session.conf.get(SHUFFLE_PARTITIONS)))
    return None if fixed in (None, asked) else FixedParallelism(asked, fixed)
