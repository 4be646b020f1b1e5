"""Which state Spark can repartition, known without Spark."""

from __future__ import annotations

from penstock.jobs.driver.errors import StateNotRepartitioned
from penstock.jobs.driver.fixed_parallelism import FixedParallelism
from penstock.jobs.storage import state_files
from penstock.jobs.storage.stored_state import StoredState


def refuse_unsupported(path: str, state: StoredState, asked: int) -> None:
    """Raises if Spark can't repartition the state of a query, by what is known before anything is copied.

    An operator that one task runs, such as an aggregation without keys, has its state in the first partition alone and looks for it nowhere
    else. Spark 4.3.0 would put it where the hash of the empty key belongs, without an error.

    Args:
        path: of the checkpoint, or of the savepoint.
        state: in it.
        asked: shuffle partitions by the spec.

    Raises:
        StateNotRepartitioned: JOB-109.
        BucketUnreachable: JOB-009.
    """
    fixed = FixedParallelism(asked, state.settings.shuffle_partitions or asked)
    if state.settings.state_backend == "memory":
        raise not_repartitioned(path, fixed, "state in memory; Spark takes RocksDB's alone")
    for (operator, _), partitions in state_files.versions(state.names()).items():
        if len(partitions) < fixed.checkpoint:
            raise not_repartitioned(path, fixed, f"stateful operator {operator} runs in one task, as an aggregation without keys does")


def not_repartitioned(path: str, fixed: FixedParallelism, why: str) -> StateNotRepartitioned:
    """The error for state that can't be repartitioned.

    Args:
        path: of the checkpoint, or of the savepoint.
        fixed: the number of shuffle partitions that it has, and the one that it would get.
        why: what of it is in the way.
    """
    return StateNotRepartitioned(
        path=path,
        given=why,
        need=f"state that Spark can repartition, from {fixed.checkpoint} to {fixed.asked} shuffle partitions",
        fix=f"stages.stateful: {fixed.checkpoint} keeps the number; or begin without the state: upgradeMode: stateless",
    )
