"""A short session whose JVM leaves its classes in an archive: ``python -m penstock.scripts.local.class_data_training FILE FOLDER``.

It loads what the JVMs of jobs load: structured streaming with state in RocksDB, Python workers, the clients of Kafka and of S3. It reaches
no network: the clients' port on loopback refuses.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.jobs.driver import session as spark_session
from penstock.jobs.spec import State
from penstock.scripts import layout

_CHECKPOINTS = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
# Nothing listens there.
_CLOSED = "127.0.0.1:1"
_BATCHES = 2


def main(archive: str, folder: str) -> None:
    """Runs the session and ends its JVM, which then writes the archive."""
    session = _session(Path(archive), Path(folder))
    gateway: Any = session.sparkContext._gateway
    _stream(session, Path(folder))
    with contextlib.suppress(Py4JJavaError):
        _kafka(session)
    with contextlib.suppress(Py4JJavaError):
        _s3(session)
    session.stop()
    process = gateway.proc
    gateway.shutdown()
    # PySpark's JVM ends when this pipe does.
    process.stdin.close()
    process.wait()


def _session(archive: Path, folder: Path) -> SparkSession:
    conf = {
        **spark_session.state_conf(State()),
        "spark.driver.extraClassPath": os.pathsep.join(str(jar) for jar in layout.spark_jars()),
        "spark.driver.extraJavaOptions": f'"-XX:ArchiveClassesAtExit={archive}" -XX:+UseParallelGC "-Djava.io.tmpdir={folder}"',
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.streaming.checkpointFileManagerClass": _CHECKPOINTS,
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.port": "0",
    }
    session = spark_session.build("class-data", "local[2]", conf)
    session.sparkContext.setLogLevel("ERROR")
    return session


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
    while len(query.recentProgress) < _BATCHES and query.exception() is None:
        query.awaitTermination(1)
    query.stop()


def _kafka(session: SparkSession) -> None:
    """The clients, which load most of what they need as they are created."""
    jvm: Any = session.sparkContext._jvm
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


def _s3(session: SparkSession) -> None:
    """s3a and the SDK below it, up to the first request."""
    jvm: Any = session.sparkContext._jvm
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


if __name__ == "__main__":
    main(*sys.argv[1:])
