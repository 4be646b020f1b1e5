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

# In MiB; half of it for write buffers. Source: Spark 4.3.0, RocksDBConf and RocksDBMemoryManager.
_LIMIT = "spark.sql.streaming.stateStore.rocksdb.maxMemoryUsageMB"


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


def memory_conf(backend: Backend, native_mib: int, *, bounded: bool) -> dict[str, str]:
    """Setting -> value that bounds RocksDB's memory on an executor to what is planned for it.

    In the course of days the block cache of all stores fills to its limit, also with blocks of files that were compacted since.

    Args:
        backend: where the state is kept.
        native_mib: RocksDB's memory on an executor.
        bounded: whether RocksDB's memory is bounded.
    """
    return {_LIMIT: str(native_mib)} if backend == "rocksdb" and bounded and native_mib else {}
