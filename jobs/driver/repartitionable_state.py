"""Which state Spark can repartition, known without Spark."""

from __future__ import annotations

import sys

from penstock.jobs.driver.errors import StateNotRepartitioned
from penstock.jobs.driver.fixed_parallelism import FixedParallelism
from penstock.jobs.storage import state_files
from penstock.jobs.storage.state_files import OperatorMetadata
from penstock.jobs.storage.stored_state import StoredState

# Those of joins of two streams whose state Spark 4.3.0 repartitions without an error, and can't read afterwards.
_JOIN, _FORMAT = "symmetricHashJoin", 4


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
    if state.settings.join_format == _FORMAT and (joins := _joins(state)):
        raise not_repartitioned(path, fixed, f"stateful operator {joins[0]} is a join of two streams with its state in format {_FORMAT}")
    for (operator, _), partitions in state_files.versions(state.names()).items():
        if len(partitions) < fixed.checkpoint:
            raise not_repartitioned(path, fixed, f"stateful operator {operator} runs in one task, as an aggregation without keys does")


def _joins(state: StoredState) -> list[int]:
    """Ids of the operators that are joins of two streams."""
    names = list(state.names())
    files = {operator: state_files.metadata_file(names, operator, sys.maxsize) for operator in state_files.operators(names)}
    return [operator for operator, file in files.items() if file is not None and _is_join(state.content(file) or b"")]


def _is_join(metadata: bytes) -> bool:
    """Whether that is an operator's metadata: of a join. What can't be read is Spark's to refuse."""
    try:
        return OperatorMetadata.of(metadata.decode()).operator_info.operator_name == _JOIN
    except ValueError:
        return False


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
