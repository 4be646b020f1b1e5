"""A real driver killed by SIGKILL and started again: no row lost, none twice, for a reader that never looks away."""

from __future__ import annotations

import json
import os
import random
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import pytest
import redis
import yaml

from penstock.jobs.configuration.runtime import RuntimeConfiguration
from penstock.jobs.local.recording import Record
from penstock.scripts import layout
from penstock.scripts.emulation.emulated_aws import EmulatedAws
from penstock.scripts.errors import DriverDied
from penstock.scripts.local import kafka_topics, recorded_run
from penstock.scripts.local.driver import LocalDriver
from penstock.scripts.local.kafka_broker import KafkaBroker
from penstock.scripts.local.servers.postgres_server import PostgresServer
from penstock.scripts.local.servers.redis_server import RedisServer
from tests.chaos.bucket_reader import BucketReader
from tests.chaos.doomed_driver import CARELESS, VARIABLE
from tests.chaos.s3_gate import S3Gate, Trap
from tests.chaos.topic_reader import TopicReader

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

CHECKPOINTS, OUTPUT = "chaos-checkpoints", "chaos-output"
# No driver says nothing for this long where all is well.
LIMIT_S = 120
PAIRS, EVERYWHERE = "tests.jobs.spark.apps.pairs", "tests.chaos.everywhere"


class DoomedDriver(LocalDriver):
    """A local driver whose program kills itself."""

    def __init__(self, configuration: RuntimeConfiguration, *, folder: Path, environment: Mapping[str, str]) -> None:
        super().__init__(configuration, folder=folder, log=folder / "driver.log", environment=environment)
        self._supervised.argv = [
            "tests.chaos.doomed_driver" if word == "penstock.jobs.driver.runtime" else word for word in self._supervised.argv
        ]

    def end(self) -> int | None:
        """Waits until the driver has ended by itself; its exit code, minus the signal's number."""
        with pytest.raises(DriverDied):
            while True:
                self.event()
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
    starts: int = 0

    def source(self, name: str, records: list[bytes]) -> None:
        """Fills a source's topic."""
        topic = f"{self.name}-{name}"
        kafka_topics.create(self.kafka.address, {topic: 1})
        kafka_topics.feed(self.kafka.address, topic, 1, [Record(value, partition=0) for value in records], lambda _: None)
        self.ends[topic] = len(records)

    def specify(self, records_a_trigger: int, **sinks: Any) -> None:
        """Writes the spec, once all sources are filled; sinks are those beside `out`."""
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
            },
        }
        (self.folder / "job.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")

    def driver(self, **doom: Any) -> DoomedDriver:
        """A driver to be started, with what kills it; nothing does by default."""
        self.starts += 1
        folder = self.folder / f"driver-{self.starts}"
        folder.mkdir()
        environment = {**self.aws.environment(), VARIABLE: json.dumps(doom)}
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
            master="local[2]",
            brokers=self.kafka.address,
            checkpoint=f"s3a://{CHECKPOINTS}/{self.name}/1",
            output_bucket=OUTPUT,
            connections=self.connections,
            spark_conf={
                "spark.driver.extraClassPath": os.pathsep.join(str(jar) for jar in layout.spark_jars()),
                "spark.driver.memory": "1g",
                "spark.driver.host": "127.0.0.1",
                "spark.driver.bindAddress": "127.0.0.1",
                "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
                "spark.ui.enabled": "false",
                "spark.local.dir": str(folder / "local"),
                "spark.sql.shuffle.partitions": "2",
                "spark.sql.streaming.noDataProgressEventInterval": "0",
                "spark.hadoop.fs.s3a.endpoint": self.endpoint or self.aws.endpoint,
                "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
                "spark.hadoop.fs.s3a.path.style.access": "true",
                "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
            },
        )


@pytest.fixture(scope="session")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmulatedAws]:
    with EmulatedAws(log=tmp_path_factory.mktemp("aws") / "aws.log") as running:
        yield running


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    folder = tmp_path_factory.mktemp("kafka")
    with KafkaBroker(folder=folder / "data", log=folder / "kafka.log") as running:
        yield running


@pytest.fixture(scope="session")
def s3(aws: EmulatedAws) -> S3Client:
    own = aws.environment()
    client = boto3.client(
        "s3",
        endpoint_url=aws.endpoint,
        region_name=own["AWS_REGION"],
        aws_access_key_id=own["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=own["AWS_SECRET_ACCESS_KEY"],
    )
    for bucket in (CHECKPOINTS, OUTPUT):
        client.create_bucket(Bucket=bucket)
    return client


NewJob = Callable[[str], Job]


@pytest.fixture
def new_job(aws: EmulatedAws, kafka: KafkaBroker, s3: S3Client, tmp_path: Path) -> NewJob:
    def make(app: str) -> Job:
        return Job(f"c{os.urandom(4).hex()}", app, aws, kafka, s3, tmp_path)

    return make


def _event(name: str, second: int) -> bytes:
    at = f"2025-04-05T{12 + second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}Z"
    return json.dumps({"key": name, "at": at, "name": name}).encode()


ROWS = {f"row-{number}" for number in range(600)}


def _everywhere(new_job: NewJob, guarantee: str, **sinks: Any) -> Job:
    """600 rows and 12 broken records in micro-batches of 50 into files, a topic of three partitions, and what else is asked for."""
    job = new_job(EVERYWHERE)
    rows = [_event(f"row-{number}", number) for number in range(600)]
    for place in range(0, 612, 51):
        rows.insert(place, b"broken")
    job.source("a", rows)
    topic = f"{job.name}-topic"
    kafka_topics.create(job.kafka.address, {topic: 3})
    job.specify(50, topic={"kafka": {"topic": topic, "partitions": 3, "key": ["name"], "guarantee": guarantee}}, **sinks)
    return job


def _faults(job: Job, reader: BucketReader, expected: set[str], named: str) -> list[str]:
    """What is wrong with the output, by what the reader saw all the time and by what lies there in the end."""
    result = [row[named] for row in job.output()]
    faults = [*reader.faults]
    faults.extend(f"row {row} is lost" for row in sorted(expected - set(result)))
    faults.extend(f"row {row} was never expected" for row in sorted(set(result) - expected))
    if len(result) != len(set(result)):
        faults.append(f"{len(result) - len(set(result))} rows lie there twice")
    if sorted(result) != sorted(reader.rows.elements()):
        faults.append("the reader has seen other rows than lie there")
    return faults


@dataclass(frozen=True)
class Kill:
    """One end of a driver: a point of the driver's own, or a write of Spark's log."""

    point: str = ""
    log: str = ""
    after: bool = False
    call: int = 2


# Each in the order of a micro-batch; every driver lives for a micro-batch or two.
KILLS = {
    "Spark's logs and Penstock's record": [
        Kill(log="offsets"),
        Kill(log="offsets", after=True),
        Kill("before the sinks"),
        Kill("after the sinks"),
        Kill("before the record"),
        Kill("after the record"),
        Kill(log="commits"),
        Kill(log="commits", after=True),
    ],
    "files": [
        Kill("before the manifest"),
        Kill("after the manifest"),
        Kill("before the files are published"),
        Kill("between two files"),
        Kill("before the chunks are taken away"),
    ],
    "the topic": [
        Kill("after the topic's manifest"),
        Kill("in a transaction"),
        Kill("after a transaction"),
        Kill("after the topic"),
    ],
}


# Nine drivers one after another, each with an engine to start: more than other tests get where the machine has other work too.
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("where", KILLS)
def test_a_driver_killed_at_every_point_loses_nothing_and_doubles_nothing_in_any_sink(
    new_job: NewJob, tmp_path: Path, aws: EmulatedAws, where: str
) -> None:
    """One job, killed at one point after another, with readers that never look away."""
    with S3Gate(aws.endpoint) as gate, PostgresServer(tmp_path / "postgres") as postgres, RedisServer(tmp_path / "redis") as cache:
        postgres.run("CREATE TABLE rows (name text PRIMARY KEY, length int NOT NULL)")
        table = {"postgres": {"connection": "shop", "table": "rows", "key": ["name"]}}
        hashes = {"redis": {"connection": "cache", "key": ["name"], "prefix": "row:"}}
        job = _everywhere(new_job, "exactly-once", table=table, hashes=hashes)
        job.endpoint, job.connections = gate.endpoint, {"shop": postgres.url, "cache": cache.url}
        with (
            BucketReader(job.s3, OUTPUT, job.name, "name") as files,
            TopicReader(job.kafka.address, f"{job.name}-topic", "name") as topic,
        ):
            for kill in KILLS[where]:
                _killed(job, gate, kill)
            assert 0 < len(topic.rows) < len(ROWS), "it was killed midway"
            gate.open(None)
            with job.driver() as driver:
                driver.until_read(job.ends)
        assert _faults(job, files, ROWS, "name") == []
        assert topic.faults == [] and topic.rows == Counter(ROWS)
        assert sorted(str(row["name"]) for row in postgres.rows("rows")) == sorted(ROWS)
        with redis.from_url(cache.url, decode_responses=True) as client:
            assert {key.removeprefix("row:") for key in client.scan_iter("row:*")} == ROWS
    assert recorded_run.count_records(job.kafka.address, f"{job.name}-errors") == 12
    assert kafka_topics.read(job.kafka.address, f"{job.name}-late") == []
    assert job.open_uploads() == 0
    assert files.looks > 10


def _killed(job: Job, gate: S3Gate, kill: Kill) -> None:
    """Runs a driver up to its end."""
    doom = {"point": kill.point, "call": kill.call} if kill.point else {}
    with job.driver(**doom) as doomed:
        pid = doomed.pid
        gate.open(Trap(kill.log, kill.call, kill.after, lambda: os.kill(pid, signal.SIGKILL)) if kill.log else None)
        assert doomed.end() == -signal.SIGKILL, kill


@pytest.mark.parametrize("seed", [1])
def test_a_join_killed_three_times_anywhere_makes_each_pair_once(new_job: NewJob, seed: int) -> None:
    random_ = random.Random(seed)
    job = new_job(PAIRS)
    names = [f"pair-{number}" for number in range(700)]
    job.source("a", [_event(name, second) for second, name in enumerate(names)])
    # A pair's two events are half a minute apart, so that most pairs come of state that a kill has to leave whole.
    job.source("b", [_event(name, second + 30) for second, name in enumerate(names)])
    job.specify(records_a_trigger=80)
    with BucketReader(job.s3, OUTPUT, job.name, "left") as reader:
        for _ in range(3):
            point = random_.choice(["before a call of S3", "after a call of S3"])
            with job.driver(point=point, call=random_.randrange(8, 35)) as doomed:
                assert doomed.end() == -signal.SIGKILL
        with job.driver() as driver:
            driver.until_read(job.ends)
    assert _faults(job, reader, set(names), "left") == []
    assert all(row["left"] == row["right"] for row in job.output())
    assert kafka_topics.read(job.kafka.address, f"{job.name}-late") == []
    assert job.open_uploads() == 0


def test_sinks_that_are_known_to_be_bad_are_caught(new_job: NewJob) -> None:
    """The same harness on files published before they are decided and on a topic at least once: it has to say so, or it proves nothing."""
    job = _everywhere(new_job, "at-least-once")
    with (
        BucketReader(job.s3, OUTPUT, job.name, "name") as files,
        TopicReader(job.kafka.address, f"{job.name}-topic", "name") as topic,
    ):
        # The second micro-batch fills the first file: before that there is nothing that could be published too early.
        for point, call in (("before the manifest", 2), ("after the sinks", 3)):
            with job.driver(sink=CARELESS, point=point, call=call) as doomed:
                assert doomed.end() == -signal.SIGKILL
        with job.driver(sink=CARELESS) as driver:
            driver.until_read(job.ends)
    faults = _faults(job, files, ROWS, "name")
    assert any("was seen twice" in fault for fault in faults)
    assert any(fault.endswith("rows lie there twice") for fault in faults)
    assert any("was seen twice" in fault for fault in topic.faults)
    assert not any("is lost" in fault for fault in faults) and set(topic.rows) == ROWS
