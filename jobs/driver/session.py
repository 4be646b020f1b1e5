"""The Spark session of every Penstock job."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

from pyspark.sql import SparkSession

from penstock.jobs import python_daemon
from penstock.jobs.blocks.keyed.backend import TTL_CONF
from penstock.jobs.spec import State, StreamingJob
from penstock.sizing.state.stores import join_format

# Covered by tests on PySpark 4.3.0. Each line has its reason.
FIXED = {
    # Dates in paths, and timestamps that readers compare, must not depend on where a driver runs.
    "spark.sql.session.timeZone": "UTC",
    # jobs/jvm: writes each checkpoint file with one PUT instead of a PUT and a copy, and offsets/N and commits/N with If-None-Match, so
    # that of two drivers exactly one creates them.
    "spark.sql.streaming.checkpointFileManagerClass": "io.penstock.checkpoint.ConditionalCheckpointFileManager",
    # jobs/jvm: all of these files by one S3 client. Hadoop's class makes one for each log and state store of a JVM, with its connections.
    "spark.hadoop.fs.AbstractFileSystem.s3a.impl": "io.penstock.checkpoint.CachedS3A",
    # Each query's watermark is decided in one place (jobs/stream/event_time); Spark's own policy has no say.
    "spark.sql.streaming.multipleWatermarkPolicy": "min",
    "spark.sql.streaming.noDataMicroBatches.enabled": "true",
    "spark.sql.streaming.metricsEnabled": "true",
    # What DataFrame.observe counts goes into the record of a micro-batch: each row once, however often its stage runs.
    "spark.sql.legacy.observeMetricsAggregateAllAttempts": "false",
    # Without it a task that takes the rows that a failed attempt has cached counts none of them (SPARK-41497).
    "spark.rdd.cache.visibilityTracking.enabled": "true",
    # The driver's metrics at /metrics/prometheus of its UI, under one namespace for all jobs: Prometheus adds the job as a label.
    "spark.metrics.conf.*.sink.prometheusServlet.class": "org.apache.spark.metrics.sink.PrometheusServlet",
    "spark.metrics.conf.*.sink.prometheusServlet.path": "/metrics/prometheus",
    "spark.metrics.namespace": "penstock",
    # The executors' metrics at /metrics/executors/prometheus of the driver's UI.
    "spark.ui.prometheus.enabled": "true",
    "spark.sql.adaptive.enabled": "false",
    # A micro-batch's shuffle files are deleted when it ends. Otherwise they stay until the driver's JVM collects garbage, which Spark asks
    # for every 30 minutes, and the disks fill with those of all micro-batches until then.
    "spark.sql.classic.shuffleDependency.fileCleanup.enabled": "true",
    # Python workers that are forked with their imports: 0.3 s of CPU time each instead of 3 s.
    "spark.python.daemon.module": python_daemon.MODULE,
    # Spark starts a daemon for each environment of its workers. It shortens the tracebacks of functions of DataFrames, by a variable in
    # that environment, but neither those of transformWithState nor those of RDDs: two daemons, of 100 MiB more, where a job has both.
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Generated classes that a JVM keeps, with what its compilers have made of them. A stateful job has a hundred, in local mode twice, the
    # jobs of a session share them, and of Spark's 100 each micro-batch takes one or two for its watermark. 500 are some 12 MiB.
    "spark.sql.codegen.cache.maxEntries": "500",
    # Kafka consumers that an executor keeps for the next micro-batch, one for each partition that it reads. When it reads more partitions,
    # Spark closes those that the next tasks need: with its 64, each of 100 partitions gets a new consumer in each micro-batch. A kept one
    # holds up to max.partition.fetch.bytes, 1 MiB, while records wait; 256 of them fit into the smallest heap that is planned.
    "spark.kafka.consumer.cache.capacity": "256",
}

_COUNT = "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows"
# Version 1 is the only one that the provider on the heap supports.
_FORMAT = "spark.sql.streaming.stateStore.checkpointFormatVersion"
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_MEMORY = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"


def state_conf(state: State) -> dict[str, str]:
    """The settings for a spec's state."""
    ttl = {} if state.ttl is None else {TTL_CONF: str(state.ttl)}
    if state.backend == "memory":
        return {"spark.sql.streaming.stateStore.providerClass": _MEMORY, _FORMAT: "1", **ttl}
    return {
        **ttl,
        "spark.sql.streaming.stateStore.providerClass": _ROCKSDB,
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": str(state.incremental).lower(),
        # State files with a unique id in their names, which commits/N lists: a driver that has lost its job overwrites nothing. Spark
        # continues a checkpoint in the format that it was begun in.
        _FORMAT: "2",
        # One store with column families per partition instead of four (measured on user_credit, 99 objects in the checkpoint instead of
        # 274), ordered by time: a join reads the rows of a key that can match, and removes those that have expired without reading others.
        # Spark continues a checkpoint in the format that it was begun in.
        "spark.sql.streaming.join.stateFormatVersion": str(join_format("rocksdb")),
        # One limit for the native memory of all stores of an executor, as the plan assumes; without it each store takes up to 136 MiB.
        "spark.sql.streaming.stateStore.rocksdb.boundedMemoryUsage": "true",
        # Otherwise each new key is looked up once more: an interval join took 52 s of CPU time instead of 42 s (2026-11-22).
        _COUNT: "false",
    }


def counting_conf(*, open_windows: bool) -> dict[str, str]:
    """The settings for a driver that says how many windows are open: RocksDB counts the rows of the state, as the heap always does."""
    return {_COUNT: "true"} if open_windows else {}


def build(name: str, master: str, conf: Mapping[str, str], package_path: Sequence[str] = ()) -> SparkSession:
    """Starts Spark.

    Args:
        name: of the application.
        master: Spark's master.
        conf: overrides `FIXED`.
        package_path: folders with Python packages for the workers of all executors.
    """
    # The workers must use this very Python; Spark would take the first `python3` on the PATH.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(name).master(master)
    for key, value in {**FIXED, **conf}.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    if package_path:
        give_workers(session, package_path)
    return session


def session_of(job: StreamingJob, session: SparkSession) -> SparkSession:
    """A session beside another one, with the settings of a job that a session can have.

    Args:
        job: the job.
        session: has Spark.
    """
    own = session.newSession()
    for key, value in {**state_conf(job.spec.state), **job.spec.spark_conf}.items():
        if key.startswith("spark.penstock.") or own.conf.isModifiable(key):
            own.conf.set(key, str(value).lower() if isinstance(value, bool) else str(value))
    return own


def give_workers(session: SparkSession, package_path: Sequence[str]) -> None:
    """Puts folders on the path of the Python workers, before the PYTHONPATH of the process that starts them.

    Each function that is sent to a worker has a copy of this environment. `spark.executorEnv.PYTHONPATH` would replace the executor's own.
    """
    environment = session.sparkContext.environment
    known = environment.get("PYTHONPATH", "")
    environment["PYTHONPATH"] = os.pathsep.join([*package_path, *filter(None, [known])])
