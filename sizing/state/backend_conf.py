"""The Spark settings of a state backend."""

from __future__ import annotations

from penstock.sizing.state.stores import Backend, join_format

_PROVIDERS: dict[Backend, str] = {
    "memory": "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider",
    "rocksdb": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
}
# As in `penstock.jobs.driver.session.state_conf`: memory as in `penstock.sizing.state.memory`, and no counting of rows.
_ROCKSDB = {
    "spark.sql.streaming.stateStore.rocksdb.boundedMemoryUsage": "true",
    "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": "false",
}


def backend_conf(backend: Backend, *, incremental: bool = True) -> dict[str, str]:
    """Setting -> value for the planned backend.

    Args:
        backend: where the state is kept.
        incremental: RocksDB's changelog checkpointing; the memory backend is always incremental.
    """
    conf = {
        "spark.sql.streaming.stateStore.providerClass": _PROVIDERS[backend],
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": str(incremental and backend == "rocksdb").lower(),
        # The one with unique file names, and the only one that Spark's provider on the heap supports.
        "spark.sql.streaming.stateStore.checkpointFormatVersion": "2" if backend == "rocksdb" else "1",
        "spark.sql.streaming.join.stateFormatVersion": str(join_format(backend)),
    }
    return conf | (_ROCKSDB if backend == "rocksdb" else {})
