"""Where a contestant runs: the broker, S3, the topics of this run, and a folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.streaming.workload import Backend, Workload
from penstock.scripts import layout

CHECKPOINTS, OUTPUT = "benchmark-checkpoints", "benchmark-output"
# The cores of a small machine; a slot each.
SLOTS = 2
HEAP = "4g"


@dataclass(frozen=True)
class Place:
    """One run.

    Args:
        workload: the job.
        records: of its first input.
        topics: source -> topic.
        out: the topic, the folder in the bucket, or the prefix of the hashes that the rows go to.
        errors: the topic that broken records go to; None: they are dropped.
        brokers: ``host:port``.
        redis: URL of the Redis server.
        service: URL of the HTTP service that some apps call.
        s3: endpoint of S3.
        s3_requests: how many requests S3 has had.
        credentials: environment variables with the credentials for S3.
        folder: an existing folder of this run's own.
        backend: of the state; None: the contestant's default.
    """

    workload: Workload
    records: int
    topics: Mapping[str, str]
    out: str
    errors: str | None
    brokers: str
    redis: str = field(repr=False)
    service: str
    s3: str
    s3_requests: Callable[[], int]
    credentials: Mapping[str, str]
    folder: Path
    backend: Backend | None = None

    @property
    def records_a_trigger(self) -> int:
        """How many records a micro-batch takes at most."""
        return max(1_000, int(self.records * self.workload.bounded_by))

    def spark_conf(self) -> dict[str, str]:
        """Settings for Spark that are the same for all: what the environment is, how large the JVM is, how many tasks a stage has."""
        scratch = self.folder / "scratch"
        scratch.mkdir(exist_ok=True)
        return {
            "spark.driver.extraClassPath": os.pathsep.join(str(jar) for jar in layout.spark_jars()),
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.memory": HEAP,
            # C2, as in production.
            "spark.driver.extraJavaOptions": f'-XX:+UseParallelGC "-Djava.io.tmpdir={scratch}"',
            "spark.ui.port": "0",
            "spark.local.dir": str(scratch),
            "spark.sql.warehouse.dir": str(scratch / "warehouse"),
            "spark.sql.shuffle.partitions": str(SLOTS),
            "spark.hadoop.hadoop.tmp.dir": str(scratch),
            "spark.hadoop.fs.s3a.endpoint": self.s3,
            "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
            "spark.hadoop.fs.s3a.path.style.access": "true",
            "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
            "spark.sql.streaming.noDataProgressEventInterval": "0",
        }
