"""What Spark's transformWithState needs of the state backend: keyed functions, joins by versions and triggers all run on it."""

from __future__ import annotations

from pyspark.sql import SparkSession

# For how long keyed state is kept, in milliseconds; set on the session, read here and not by Spark.
TTL_CONF = "spark.penstock.state.ttlMs"
_PROVIDER = "spark.sql.streaming.stateStore.providerClass"


def needs_rocksdb(session: SparkSession, what: str) -> None:
    """Refuses to begin where state would be kept on the heap; Spark itself would only tell so within the first micro-batch.

    Args:
        session: whose queries keep the state.
        what: needs it, in the plural.

    Raises:
        ValueError: a state backend that is not RocksDB.
    """
    if "RocksDB" not in (session.conf.get(_PROVIDER, "") or ""):
        raise ValueError(f"{what} require RocksDB state, and this job keeps its state on the heap; set state.backend: rocksdb in the spec")
