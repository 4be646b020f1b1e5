"""The state backend that Spark's transformWithState requires: keyed functions, temporal joins and triggers all run on it."""

from __future__ import annotations

from pyspark.sql import SparkSession

# Time to live of keyed state in milliseconds; set on the session, read here and not by Spark.
TTL_CONF = "spark.penstock.state.ttlMs"
_PROVIDER = "spark.sql.streaming.stateStore.providerClass"


def needs_rocksdb(session: SparkSession, what: str) -> None:
    """Rejects a state backend on the heap; Spark itself would only report it within the first micro-batch.

    Args:
        session: whose queries keep the state.
        what: what needs RocksDB, in the plural.

    Raises:
        ValueError: a state backend other than RocksDB.
    """
    if on_the_heap(session):
        raise ValueError(f"{what} require RocksDB state, and this job keeps its state on the heap; set state.backend: rocksdb in the spec")


def on_the_heap(session: SparkSession) -> bool:
    """Whether the session's queries keep their state on the heap."""
    return "RocksDB" not in (session.conf.get(_PROVIDER, "") or "")
