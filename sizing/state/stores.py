"""Number of state stores of a query.

Source: Spark 4.3.0: one store per operator and shuffle partition; a stream-stream join has four in state format 2 (two per side in
SymmetricHashJoinStateManager), and one with column families in formats 3 and 4, which require RocksDB.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

Backend = Literal["memory", "rocksdb"]
OperatorKind = Literal["join", "other"]

# Source: Spark 4.3.0, spark.sql.streaming.join.stateFormatVersion's default; Penstock's sessions set 4 with RocksDB.
DEFAULT_JOIN_FORMAT = 2
ROCKSDB_JOIN_FORMAT = 4


def join_format(backend: Backend) -> int:
    """The state format of joins in Penstock's sessions."""
    return ROCKSDB_JOIN_FORMAT if backend == "rocksdb" else DEFAULT_JOIN_FORMAT


def stores_per_operator(kind: OperatorKind, state_format: int = DEFAULT_JOIN_FORMAT) -> int:
    """Stores of one operator in one shuffle partition.

    Args:
        kind: ``join`` for a stream-stream join; ``other`` for an aggregation, a session window, a deduplication.
        state_format: of joins, 1 to 4.
    """
    return 4 if kind == "join" and state_format <= DEFAULT_JOIN_FORMAT else 1


def stores_per_partition(operators: Iterable[OperatorKind], state_format: int = DEFAULT_JOIN_FORMAT) -> int:
    """Stores of all stateful operators in one shuffle partition; 0 if there are none."""
    return sum(stores_per_operator(kind, state_format) for kind in operators)


def state_stores(shuffle_partitions: int, per_partition: int) -> int:
    """Stores of the whole query."""
    return shuffle_partitions * per_partition
