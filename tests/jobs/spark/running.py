"""Runs a job in a test: the driver's own code in the test's session, fed record by record, and read back like any reader."""

from __future__ import annotations

import json
import queue
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from pyspark.sql import SparkSession

from penstock.jobs.configuration.kafka_access import KafkaAccess
from penstock.jobs.configuration.runtime import RuntimeConfiguration
from penstock.jobs.driver.errors import NoProgress
from penstock.jobs.driver.runtime import Driver
from penstock.jobs.driver.session import state_conf
from penstock.jobs.local.recording import Record
from penstock.jobs.spec.resources import State
from penstock.jobs.spec.stage_settings import SHUFFLE_PARTITIONS
from penstock.jobs.storage.generation import Generation
from penstock.jobs.storage.job_folder import JobFolder
from penstock.scripts.local import kafka_topics, recorded_run

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

CHECKPOINTS, OUTPUT = "test-checkpoints", "test-output"
# No successful test has a query without progress for so long, nor waits for as long as the second.
PROGRESS_S = 200.0
_LIMIT_S = 300


@contextmanager
def asking(
    session: SparkSession, partitions: int, state: State | None = None, spark_conf: Mapping[str, str] | None = None
) -> Iterator[None]:
    """A session as a plan with this parallelism makes it, and this state and `sparkConf`."""
    conf = {SHUFFLE_PARTITIONS: str(partitions), **(state_conf(state) if state is not None else {}), **(spark_conf or {})}
    before = {key: str(session.conf.get(key)) for key in conf}
    try:
        for key, value in conf.items():
            session.conf.set(key, value)
        yield
    finally:
        for key, value in before.items():
            session.conf.set(key, value)


@dataclass
class Surroundings:
    """Environment of the tests' jobs."""

    session: SparkSession
    brokers: str
    s3: S3Client
    folder: Path
    feeder: kafka_topics.Feeder

    def job(
        self, app: str, *, sources: Mapping[str, int], time: Mapping[str, Any] | None = None, name: str | None = None, **spec: Any
    ) -> TestedJob:
        """A job with separate topics and paths: sources are name -> partitions, sinks are `out`, `errors` and `late`."""
        name = name or f"t{uuid.uuid4().hex[:8]}"
        topics = {source: f"{name}-{source}" for source in sources}
        asked = {topics[source]: count for source, count in sources.items()}
        kafka_topics.create(self.brokers, asked | {f"{name}-errors": 1, f"{name}-late": 1})
        clock = {"field": "at", "outOfOrderness": "10s"} if time is None else time
        document = {
            "apiVersion": "penstock/v1",
            "kind": "StreamingJob",
            "metadata": {"name": name},
            "spec": {
                "app": app,
                "parallelism": 2,
                "executor": {"slots": 2, "memory": "2g"},
                "trigger": "1ms",
                "sources": {s: {"kafka": {"topic": topics[s], "startingOffsets": "earliest"}, "time": clock} for s in sources},
                "sinks": {
                    # Files that do not stay open: the rows of a micro-batch can be read once it is committed.
                    "out": {"files": {"path": name, "prefix": "part-", "roll": {"interval": "1ms"}}},
                    "errors": {"kafka": {"topic": f"{name}-errors"}},
                    "late": {"kafka": {"topic": f"{name}-late"}},
                },
                **spec,
            },
        }
        path = self.folder / f"{name}.yaml"
        path.write_text(yaml.safe_dump(document), encoding="utf-8")
        return TestedJob(self, name, path, topics)


@dataclass
class TestedJob:
    """A job with its topics; `running` may be entered again after it ended, like a restarted driver."""

    __test__ = False

    around: Surroundings
    name: str
    spec: Path
    topics: Mapping[str, str]
    checkpoints: str = CHECKPOINTS
    output: str = OUTPUT
    connections: dict[str, str] = field(default_factory=dict)
    lease_s: float = 30.0
    max_offsets_per_trigger: int | None = None
    report_open_windows: bool = False
    progress_timeout_s: float = PROGRESS_S
    # How the driver reaches the brokers; by default as the test does.
    kafka: KafkaAccess | None = None
    # Called when the driver emits an event, in the driver's thread.
    on: Mapping[str, Callable[[], object]] = field(default_factory=dict)

    def edit(self, change: Callable[[dict[str, Any]], object]) -> TestedJob:
        """The same job with a changed `spec`."""
        document = yaml.safe_load(self.spec.read_text(encoding="utf-8"))
        change(document["spec"])
        self.spec.write_text(yaml.safe_dump(document), encoding="utf-8")
        return self

    @property
    def folder(self) -> JobFolder:
        """The job's folder on S3."""
        return JobFolder(f"s3a://{self.checkpoints}/{self.name}")

    @property
    def generation(self) -> Generation:
        """The newest one."""
        current = self.folder.current()
        assert current is not None
        return current

    @contextmanager
    def running(self) -> Iterator[Running]:
        """Runs the driver in a thread until the block ends."""
        kafka = self.kafka or KafkaAccess(self.around.brokers)
        configuration = RuntimeConfiguration(
            spec=str(self.spec),
            master="local[2]",
            brokers=kafka.address,
            kafka_security=kafka.security,
            kafka_secret=kafka.secret,
            kafka_ca_file=kafka.ca_file,
            kafka_ca=kafka.ca,
            job_folder=f"s3a://{self.checkpoints}/{self.name}",
            output_bucket=self.output,
            connections=self.connections,
            lease_s=self.lease_s,
            max_offsets_per_trigger=self.max_offsets_per_trigger,
            report_open_windows=self.report_open_windows,
            progress_timeout_s=self.progress_timeout_s,
        )
        running = Running(self)
        driver = Driver(configuration, running.stop, running.hear, running.hangs)
        thread = threading.Thread(target=running.run, args=(driver,))
        thread.start()
        try:
            running.reading = running.wait("reading")
            running.others = [running.wait("reading") for _ in running.reading.get("queries", [])[1:]]
            yield running
        finally:
            running.stop.set()
            thread.join(_LIMIT_S)
            assert not thread.is_alive(), "the driver does not stop"

    def feed(self, source: str, *values: Mapping[str, Any] | bytes, partition: int = 0) -> None:
        """Writes records into a source's topic, mappings as JSON."""
        records = [Record(value if isinstance(value, bytes) else json.dumps(value).encode(), partition=partition) for value in values]
        kept = self.around.feeder
        feeder = kept if kept.address == self.around.brokers else kafka_topics.Feeder(self.around.brokers)
        feeder.feed(self.topics[source], partition + 1, records, lambda _: None)

    def rows(self) -> list[dict[str, Any]]:
        """The output as read from the bucket, sorted."""
        files = recorded_run.output_files(self.around.s3, OUTPUT, self.name)
        return sorted(recorded_run.output_rows(self.around.s3, OUTPUT, files), key=lambda row: json.dumps(row, sort_keys=True))

    def rows_of(self, sink: str) -> list[dict[str, Any]]:
        """The rows of a sink whose path is the job's name and its own."""
        files = recorded_run.output_files(self.around.s3, OUTPUT, f"{self.name}-{sink}")
        return sorted(recorded_run.output_rows(self.around.s3, OUTPUT, files), key=lambda row: json.dumps(row, sort_keys=True))

    def side_outputs(self, sink: str) -> list[dict[str, Any]]:
        """Content of a side output's topic."""
        return list(recorded_run.topic_rows(self.around.brokers, f"{self.name}-{sink}"))


@dataclass
class Running:
    """A running driver and its events."""

    job: TestedJob
    stop: threading.Event = field(default_factory=threading.Event)
    reading: Mapping[str, Any] = field(default_factory=dict)
    # What the job's further queries read.
    others: Sequence[Mapping[str, Any]] = ()
    failure: BaseException | None = None
    batches: list[dict[str, Any]] = field(default_factory=list)
    committed: list[dict[str, Any]] = field(default_factory=list)
    waited: Mapping[str, Any] | None = None
    heard: list[str] = field(default_factory=list)
    # What the watch has found. It ends a test that waits for anything else, and nothing where the test takes it from here.
    hung: queue.Queue[NoProgress] = field(default_factory=queue.Queue)
    _events: queue.Queue[tuple[str, Mapping[str, Any]]] = field(default_factory=queue.Queue)

    def run(self, driver: Driver) -> None:
        """The driver's thread."""
        try:
            driver.run_in(self.job.around.session)
        except BaseException as error:
            self.failure = error
            self.hear("failed", {"error": error})
        else:
            self.hear("stopped", {})

    def hear(self, event: str, detail: Mapping[str, object]) -> None:
        """Receives the driver's events."""
        self.job.on.get(event, lambda: None)()
        self.heard.append(event)
        self._events.put((event, json.loads(json.dumps(detail, default=str))))

    def hangs(self, fault: NoProgress) -> None:
        """Receives what the watch finds."""
        self.hung.put(fault)
        self.hear("hung", {})

    def wait(self, wanted: str) -> Mapping[str, Any]:
        """The next event of a kind; an exception of the driver is raised."""
        while True:
            event, detail = self.next()
            if event == "failed" and wanted != "failed":
                assert self.failure is not None
                raise self.failure
            if event == wanted:
                return detail

    def next(self) -> tuple[str, Mapping[str, Any]]:
        """The next event."""
        event, detail = self._events.get(timeout=_LIMIT_S)
        if event == "hung" and not self.hung.empty():
            raise self.hung.get()
        if event == "batch":
            self.batches.append(dict(detail))
        if event == "waiting":
            self.waited = detail
        if event == "committed":
            self.committed.append(dict(detail))
        return event, detail

    def until_read(self, ends: Mapping[str, Sequence[int]]) -> list[dict[str, Any]]:
        """Waits until every query has committed everything up to source -> ends by partition, of the sources that it reads, and is idle;
        returns the micro-batches since.
        """
        begun = len(self.batches)
        wanted = {(self.job.topics[source], str(number)): end for source, some in ends.items() for number, end in enumerate(some)}
        left = {event.get("query"): self._of_query(event, wanted) for event in (self.reading, *self.others)}
        for committed in self.committed:
            self._read(left, committed)
        while left:
            event, detail = self.next()
            if event == "failed":
                assert self.failure is not None
                raise self.failure
            if event == "committed":
                self._read(left, detail)
            elif event == "idle" and not left.get(detail.get("query"), wanted):
                del left[detail.get("query")]
        return self.batches[begun:]

    def _read(self, left: dict[str | None, dict[tuple[str, str], int]], committed: Mapping[str, Any]) -> None:
        """Removes from what the queries have to read what one of them has committed."""
        query, offsets = committed.get("query"), committed["ends"]
        if query in left:
            left[query] = {place: end for place, end in left[query].items() if offsets.get(place[0], {}).get(place[1], 0) < end}

    def _of_query(self, reading: Mapping[str, Any], wanted: Mapping[tuple[str, str], int]) -> dict[tuple[str, str], int]:
        topics = {topic for of_source in reading["offsets"].values() for topic in of_source}
        return {place: end for place, end in wanted.items() if place[0] in topics}
