"""A job that is killed and started again, its input, and what its output must be."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from penstock.jobs.configuration.runtime import RuntimeConfiguration
from penstock.jobs.local.recording import Record
from penstock.scripts import layout
from penstock.scripts.emulation.emulated_aws import EmulatedAws
from penstock.scripts.errors import DriverDied
from penstock.scripts.local import kafka_topics, recorded_run
from penstock.scripts.local.driver import LocalDriver
from penstock.scripts.local.kafka_broker import KafkaBroker
from penstock.scripts.local.spark_cluster import fast_start
from tests.chaos.bucket_reader import BucketReader
from tests.chaos.doomed_driver import VARIABLE

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

CHECKPOINTS, OUTPUT = "chaos-checkpoints", "chaos-output"
# No driver says nothing for this long where all is well, also on a machine with other work.
LIMIT_S = 300
EVERYWHERE = "tests.chaos.everywhere"


class DoomedDriver(LocalDriver):
    """A local driver whose program kills itself."""

    def __init__(self, configuration: RuntimeConfiguration, *, folder: Path, environment: Mapping[str, str]) -> None:
        super().__init__(configuration, folder=folder, log=folder / "driver.log", environment=environment)
        self._supervised.argv = [
            "tests.chaos.doomed_driver" if word == "penstock.jobs.driver.runtime" else word for word in self._supervised.argv
        ]

    def end(self) -> int | None:
        """Waits until the driver has ended by itself; its exit code, minus the signal's number."""
        worked = time.monotonic()
        with pytest.raises(DriverDied):
            while True:
                if self.event()["event"] != "idle":
                    worked = time.monotonic()
                elif time.monotonic() - worked > LIMIT_S:
                    pytest.fail(f"the driver has had nothing to do for {LIMIT_S} s, and lives; see {self.log}")
        return self._supervised.returncode

    def until_read(self, ends: Mapping[str, int]) -> None:
        """Waits until the first partition of each topic is committed up to an end, and nothing is left to do."""
        done = False
        while (event := self.event())["event"] != "idle" or not done:
            if event["event"] == "committed":
                done = all(event["ends"].get(topic, {}).get("0", 0) >= end for topic, end in ends.items())

    def event(self) -> dict[str, Any]:
        """What the driver tells next; that it has died is noticed within a second."""
        for _ in range(LIMIT_S):
            if event := self.next_event(1):
                return event
        pytest.fail(f"the driver said nothing for {LIMIT_S} s; see {self.log}")


@dataclass
class Job:
    """A job that is killed: its topics have one partition each, its output has many small files."""

    name: str
    app: str
    aws: EmulatedAws
    kafka: KafkaBroker
    s3: S3Client
    folder: Path
    ends: dict[str, int] = field(default_factory=dict)
    connections: dict[str, str] = field(default_factory=dict)
    endpoint: str = ""
    endpoint_of_python: str = ""
    master: str = "local[2]"
    spark_conf: dict[str, str] = field(default_factory=dict)
    lease_s: float = 30
    starts: int = 0

    def source(self, name: str, records: list[bytes]) -> None:
        """Fills a source's topic."""
        topic = f"{self.name}-{name}"
        kafka_topics.create(self.kafka.address, {topic: 1})
        kafka_topics.feed(self.kafka.address, topic, 1, [Record(value, partition=0) for value in records], lambda _: None)
        self.ends[topic] = len(records)

    def open_source(self, name: str, partitions: int) -> str:
        """Creates a source's topic, to be filled while the job runs; returns its name."""
        topic = f"{self.name}-{name}"
        kafka_topics.create(self.kafka.address, {topic: partitions})
        self.ends[topic] = 0
        return topic

    def specify(self, records_a_trigger: int, state: Mapping[str, Any] | None = None, **sinks: Any) -> None:
        """Writes the spec, once all sources are known; sinks are those beside `out`."""
        kafka_topics.create(self.kafka.address, {f"{self.name}-{sink}": 1 for sink in ("errors", "late")})
        clock = {"field": "at", "outOfOrderness": "10s"}
        kafka = {"startingOffsets": "earliest", "maxOffsetsPerTrigger": records_a_trigger}
        names = [topic.removeprefix(f"{self.name}-") for topic in self.ends]
        document = {
            "apiVersion": "penstock/v1",
            "kind": "StreamingJob",
            "metadata": {"name": self.name},
            "spec": {
                "app": self.app,
                "parallelism": 2,
                "executor": {"slots": 2, "memory": "2g"},
                "trigger": "1ms",
                "sources": {name: {"kafka": {"topic": f"{self.name}-{name}", **kafka}, "time": clock} for name in names},
                "sinks": {
                    "out": {"files": {"path": self.name, "bucketBy": "none", "roll": {"size": "2k"}}},
                    "errors": {"kafka": {"topic": f"{self.name}-errors"}},
                    "late": {"kafka": {"topic": f"{self.name}-late"}},
                    **sinks,
                },
                **({"state": dict(state)} if state else {}),
            },
        }
        (self.folder / "job.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")

    def driver(self, **doom: Any) -> DoomedDriver:
        """A driver to be started, with what kills it; nothing does by default."""
        self.starts += 1
        folder = self.folder / f"driver-{self.starts}"
        folder.mkdir()
        own = {"AWS_ENDPOINT_URL": self.endpoint_of_python} if self.endpoint_of_python else {}
        environment = {**self.aws.environment(), **own, VARIABLE: json.dumps(doom)}
        return DoomedDriver(self._configuration(folder), folder=folder, environment=environment)

    def output(self) -> list[dict[str, Any]]:
        """The rows that lie in the bucket."""
        return list(recorded_run.output_rows(self.s3, OUTPUT, recorded_run.output_files(self.s3, OUTPUT, self.name)))

    def open_uploads(self) -> int:
        """How many uploads are open."""
        return len(self.s3.list_multipart_uploads(Bucket=OUTPUT, Prefix=f"{self.name}/").get("Uploads", []))

    def _configuration(self, folder: Path) -> RuntimeConfiguration:
        return RuntimeConfiguration(
            spec=str(self.folder / "job.yaml"),
            master=self.master,
            brokers=self.kafka.address,
            job_folder=f"s3a://{CHECKPOINTS}/{self.name}",
            output_bucket=OUTPUT,
            connections=self.connections,
            lease_s=self.lease_s,
            spark_conf={
                "spark.driver.extraClassPath": os.pathsep.join(str(jar) for jar in layout.spark_jars()),
                "spark.driver.memory": "1g",
                "spark.driver.host": "127.0.0.1",
                "spark.driver.bindAddress": "127.0.0.1",
                "spark.driver.extraJavaOptions": fast_start(),
                "spark.ui.enabled": "false",
                "spark.local.dir": str(folder / "local"),
                "spark.sql.shuffle.partitions": "2",
                "spark.sql.streaming.noDataProgressEventInterval": "0",
                "spark.hadoop.fs.s3a.endpoint": self.endpoint or self.aws.endpoint,
                "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
                "spark.hadoop.fs.s3a.path.style.access": "true",
                "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
                **self.spark_conf,
            },
        )


NewJob = Callable[[str], Job]


def event(name: str, second: int) -> bytes:
    at = f"2025-04-05T{12 + second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}Z"
    return json.dumps({"key": name, "at": at, "name": name}).encode()


ROWS = {f"row-{number}" for number in range(600)}


def everywhere(new_job: NewJob, guarantee: str, records_a_trigger: int = 50, **sinks: Any) -> Job:
    """600 rows and 12 broken records in micro-batches into files, a topic of three partitions, and what else is asked for."""
    job = new_job(EVERYWHERE)
    rows = [event(f"row-{number}", number) for number in range(600)]
    for place in range(0, 612, 51):
        rows.insert(place, b"broken")
    job.source("a", rows)
    topic = f"{job.name}-topic"
    kafka_topics.create(job.kafka.address, {topic: 3})
    job.specify(records_a_trigger, topic={"kafka": {"topic": topic, "partitions": 3, "key": ["name"], "guarantee": guarantee}}, **sinks)
    return job


def faults(job: Job, reader: BucketReader, expected: set[str], named: str) -> list[str]:
    """What is wrong with the output, by what the reader saw all the time and by what lies there in the end."""
    result = [row[named] for row in job.output()]
    found = [*reader.faults]
    found.extend(f"row {row} is lost" for row in sorted(expected - set(result)))
    found.extend(f"row {row} was never expected" for row in sorted(set(result) - expected))
    if len(result) != len(set(result)):
        found.append(f"{len(result) - len(set(result))} rows lie there twice")
    if sorted(result) != sorted(reader.rows.elements()):
        found.append("the reader has seen other rows than lie there")
    return found
