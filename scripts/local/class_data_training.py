"""A short session whose JVM leaves its classes in an archive: ``python class_data_training.py FILE FOLDER [CLASS_PATH]``.

It loads what the JVMs of jobs load: structured streaming with state in RocksDB, Python workers, the clients of Kafka, S3 and Kubernetes,
and what an executor has beside its tasks. It reaches no network: the clients' port on loopback refuses.

Local runs use it, and the image's build, which has this file before it has Penstock's wheel: it imports nothing of Penstock.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark import SparkConf, SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

# Those of the jobs' settings by which classes are loaded.
JOBS = {
    "spark.metrics.conf.*.sink.prometheusServlet.class": "org.apache.spark.metrics.sink.PrometheusServlet",
    "spark.metrics.conf.*.sink.prometheusServlet.path": "/metrics/prometheus",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",
    "spark.sql.streaming.stateStore.providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    "spark.sql.streaming.stateStore.rocksdb.boundedMemoryUsage": "true",
    "spark.ui.prometheus.enabled": "true",
    "spark.ui.showConsoleProgress": "false",
}
_EXECUTOR = ("org.apache.spark.executor.CoarseGrainedExecutorBackend", "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend")
# Penstock's own is for S3.
_CHECKPOINTS = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
# Nothing listens there.
_CLOSED = "127.0.0.1:1"
_BATCHES = 2


def main(archive: Path, folder: Path, class_path: str) -> None:
    """Runs the session and ends its JVM, which then writes the archive.

    Args:
        archive: the file that it writes.
        folder: for the session's files; exists.
        class_path: what is before Spark's own jars.
    """
    session = _session(archive, folder, class_path)
    gateway: Any = session.sparkContext._gateway
    _stream(session, folder)
    _executor(gateway.jvm)
    for client in (_kafka, _s3):
        with contextlib.suppress(Py4JJavaError):
            client(gateway.jvm)
    session.stop()
    with contextlib.suppress(Py4JJavaError):
        _kubernetes(folder)
    process = gateway.proc
    gateway.shutdown()
    # PySpark's JVM ends when this pipe does.
    process.stdin.close()
    process.wait()


def _session(archive: Path, folder: Path, class_path: str) -> SparkSession:
    java = (
        f'"-XX:ArchiveClassesAtExit={archive}"',
        "-XX:+UseParallelGC",
        # What it leaves out, signed jars and classes made at run time, is a line each.
        "-Xlog:cds=error",
        "-Xlog:cds+dynamic=error",
        f'"-Djava.io.tmpdir={folder}"',
        "-Dkubernetes.request.retry.backoffLimit=0",
    )
    conf = {
        **_local(folder),
        **JOBS,
        "spark.driver.extraClassPath": class_path,
        "spark.driver.extraJavaOptions": " ".join(java),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.streaming.checkpointFileManagerClass": _CHECKPOINTS,
        "spark.sql.shuffle.partitions": "2",
    }
    builder = SparkSession.builder.appName("class-data").master("local[2]")
    for key, value in conf.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    # What fails here is either meant to, or raised.
    session.sparkContext.setLogLevel("OFF")
    return session


def _local(folder: Path) -> dict[str, str]:
    return {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": str(folder / "local"),
        "spark.ui.port": "0",
    }


def _stream(session: SparkSession, folder: Path) -> None:
    """Two micro-batches with a parse, a Python worker, a window and a sink."""

    def unchanged(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches

    def write(frame: DataFrame, batch: int) -> None:
        frame.persist()
        frame.write.mode("append").json(f"file://{folder}/out")
        frame.unpersist()

    rows = session.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).option("numPartitions", 2).load()
    parsed = rows.select(F.from_json(F.to_json(F.struct("value")), "value BIGINT").alias("v"), "timestamp").select("v.value", "timestamp")
    kept = parsed.mapInArrow(unchanged, parsed.schema).withWatermark("timestamp", "10 seconds")
    counts = kept.groupBy(F.window("timestamp", "1 second"), F.col("value") % 5).count()
    writer = counts.writeStream.outputMode("update").foreachBatch(write).option("checkpointLocation", f"file://{folder}/checkpoint")
    query = writer.start()
    while len(query.recentProgress) < _BATCHES:
        # Raises the failure of a query that has failed.
        query.awaitTermination(1)
    query.stop()


def _executor(jvm: Any) -> None:
    """What an executor's process has beside the tasks, which run in the driver's here."""
    for name in _EXECUTOR:
        jvm.java.lang.Class.forName(name)


def _kafka(jvm: Any) -> None:
    """The clients, which load most of what they need as they are created."""
    serialization = "org.apache.kafka.common.serialization.ByteArray"
    settings = jvm.java.util.HashMap()
    for key in ("key", "value"):
        settings.put(f"{key}.serializer", f"{serialization}Serializer")
        settings.put(f"{key}.deserializer", f"{serialization}Deserializer")
    settings.put("bootstrap.servers", _CLOSED)
    clients = jvm.org.apache.kafka.clients
    for client in (
        clients.consumer.KafkaConsumer(settings),
        clients.producer.KafkaProducer(settings),
        clients.admin.Admin.create(settings),
    ):
        client.close(jvm.java.time.Duration.ofSeconds(0))


def _s3(jvm: Any) -> None:
    """s3a and the SDK below it, up to the first request."""
    settings = jvm.org.apache.hadoop.conf.Configuration()
    for key, value in {
        "endpoint": f"http://{_CLOSED}",
        "endpoint.region": "us-east-1",
        "access.key": "none",
        "secret.key": "none",
        "path.style.access": "true",
        "attempts.maximum": "0",
        "retry.limit": "0",
        "connection.timeout": "1000",
        "bucket.probe": "0",
    }.items():
        settings.set(f"fs.s3a.{key}", value)
    path = jvm.org.apache.hadoop.fs.Path("s3a://none/none")
    path.getFileSystem(settings).exists(path)


def _kubernetes(folder: Path) -> None:
    """Spark's scheduler for Kubernetes, up to the first requests."""
    conf = {**_local(folder), "spark.app.name": "class-data", "spark.kubernetes.container.image": "none"}
    SparkContext(conf=SparkConf().setMaster(f"k8s://http://{_CLOSED}").setAll(list(conf.items())))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), "".join(sys.argv[3:]))
