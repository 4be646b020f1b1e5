"""One job run in the local environment: input written, run until all is processed, output read back."""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from penstock.jobs.configuration.plan_hash import plan_hash
from penstock.jobs.configuration.progress_timeout import progress_timeout_s
from penstock.jobs.configuration.runtime import RuntimeConfiguration
from penstock.jobs.driver.root_cause import OwnCode, of_exception
from penstock.jobs.local.recording import Expectation, Record, Recorded
from penstock.jobs.spec import FromSocket
from penstock.jobs.watermark import END_MS
from penstock.scripts.errors import ExpectationFailed, InputFailed, RunTooLong, SparkClusterDied, SparkClusterNotReady
from penstock.scripts.local import driver_conf, kafka_topics, recorded_run
from penstock.scripts.local import files as local_files
from penstock.scripts.local.driver import DRIVER_GRACE_S, LocalDriver
from penstock.scripts.local.environment import LocalEnvironment
from penstock.scripts.local.job import Job
from penstock.scripts.local.job_progress import JobProgress
from penstock.scripts.local.kafka_topics import Fed
from penstock.scripts.local.machine import LocalMachine
from penstock.scripts.local.run_results import RunResults
from penstock.scripts.local.spark_cluster import SparkCluster
from penstock.scripts.local.verdict import Outcome
from penstock.scripts.progress import Steps
from penstock.scripts.render.node_shares import counted
from penstock.sizing.errors import PenstockError

# The longest time without an event from the driver. A micro-batch of 100,000 rows takes seconds; Spark's start takes ten.
STALL_LIMIT_S = 300
_LOOK_S = 1.0
_LOGGED = "the log has its traceback"
# A driver whose executors ended with this process waits for others; with them, it finishes a micro-batch in this time.
_GRACE_WITH_EXECUTORS_S = 20
# An executor logs its registration slightly after the driver counts it.
_LATER_S = 10
# Executors that end before the driver reads. One or two may have met a busy machine.
_MOST_ENDED = 5


@dataclass
class LocalRun:
    """One run of a job, from its topics to its outcome.

    Args:
        job: the job.
        local: the local environment.
        machine: the plan scaled down to this machine.
        folder: a missing folder for the driver's files.
        steps: shows progress.
        lines: connection -> lines that its socket sends.
        connections: name -> URL of the servers started for them.
        master_port: of the master of its executors, 0 for a free one.
        stall_limit_s: the longest time without an event from the driver, in seconds.
    """

    job: Job
    local: LocalEnvironment
    machine: LocalMachine
    folder: Path
    steps: Steps
    fed: dict[str, Fed] = field(default_factory=dict)
    reading: dict[str, Any] = field(default_factory=dict)
    progress: JobProgress = field(default_factory=JobProgress)
    micro_batches: int = 0
    processing_ms: int = 0
    waits: bool = False
    files: dict[str, list[Recorded]] = field(default_factory=dict)
    lines: Mapping[str, int] = field(default_factory=dict)
    connections: Mapping[str, str] = field(default_factory=dict)
    master_port: int = 0
    stall_limit_s: float = STALL_LIMIT_S
    cluster: SparkCluster | None = None

    @property
    def bounded(self) -> bool:
        """Whether the job reads the available input and ends."""
        return self.job.spec.job.spec.trigger == "availableNow"

    @property
    def checkpoint_folder(self) -> str:
        """Checkpoint path of the job's first generation, below the checkpoints' bucket."""
        return f"{self.job.name}/checkpoints/1"

    @property
    def given(self) -> dict[str, int]:
        """Topic, path of files or connection of a socket -> number of input records, without flush events."""
        topics = {topic: fed.records for topic, fed in self.fed.items()}
        return topics | {path: len(some) for path, some in self.files.items()} | dict(self.lines)

    def records(self) -> dict[str, list[Record]]:
        """Topic -> the input to write, from the spec's generators.

        Raises:
            PenstockError: RUN-013.
        """
        topics = self.job.plan.kafka.topics
        return {place: self._made(place, generate(topics.get(place, 1))) for place, generate in self.job.generators.items()}

    @contextmanager
    def driver(self) -> Iterator[LocalDriver]:
        """The job's driver, with a running query.

        Raises:
            PenstockError: the driver's failure, or that of a component around it.
        """
        self.folder.mkdir(parents=True)
        with self._cluster(), self._driver() as driver:
            try:
                self._wait_until_reading(driver)
                yield driver
            except (SparkClusterDied, SparkClusterNotReady):
                # It would wait for executors, not finish its micro-batch.
                driver.kill()
                raise

    def check(self) -> None:
        """Returns while everything around the driver runs.

        Raises:
            PenstockError: RUN-003, RUN-010, RUN-030, RUN-040, RUN-041.
        """
        self.local.check()
        if self.cluster is not None:
            self.cluster.check()
            # Workers replace executors that end as they start without a limit, several a second.
            if not self.reading and (ended := self.cluster.ended_executors()) >= _MOST_ENDED:
                need = "executors that run until they are stopped"
                raise self._not_ready(self.cluster, f"{counted(ended, 'executor')} ended while the driver waited for them", need)

    def feed(self, records: Mapping[str, list[Record]]) -> None:
        """Writes the input to its topics.

        Raises:
            InputFailed: RUN-013.
        """
        local_files.make_buckets(self.local.s3, self.job.spec)
        for topic, some in records.items():
            if (files := local_files.source_of(self.job.spec, topic)) is not None:
                self.files[topic] = local_files.write(self.local.s3, self.local.environment.spec.buckets.output, files, some)
                self.steps.line("feed", f"{len(some):,} lines written to files under {topic}")
                continue
            with self.steps.at("feed", f"{len(some):,} records into {topic}") as step:
                partitions = self.job.plan.kafka.topics[topic]
                fed = self._feeder.feed(topic, partitions, some, lambda _: None)
                flush = f" and {len(fed.flush)} flush events" if fed.flush else ""
                step.said = f"{fed.records:,} records{flush} into {topic}"
            self.fed[topic] = fed

    @cached_property
    def _feeder(self) -> kafka_topics.Feeder:
        return kafka_topics.Feeder(self.local.kafka.address)

    def process(self, driver: LocalDriver) -> None:
        """Waits until the job has processed all of its input, with progress by micro-batch.

        Raises:
            PenstockError: RUN-015, the driver's failure, or that of a component around it.
        """
        while True:
            event = self._next(driver)
            self.progress.take(event)
            if event["event"] == "committed":
                self._show(self.progress.batch(event), event, self.progress.ends)
            elif event["event"] == "stopped":
                # A bounded run ends on its own; if it has not read everything by then, the counts show it.
                return
            elif event["event"] == "idle" and self.progress.idle and self._all_read(self.progress.ends):
                if not self.progress.open_windows:
                    return
                self._say_it_waits()

    def _say_it_waits(self) -> None:
        if not self.waits:
            self.waits = True
            self.steps.line("windows", f"all is read; {self.progress.open_windows:,} groups wait for the clock to close their windows")

    def outcome(self, expected: Expectation | None) -> Outcome:
        """What a reader finds in the bucket and in the topics."""
        return self.results.outcome(expected, sum(self.given.values()))

    @property
    def results(self) -> RunResults:
        """A reader of what the run has written so far."""
        return RunResults(self.job, self.local, self.progress, self.connections)

    def expectation(self) -> Expectation | None:
        """The expected output, computed from the recorded input.

        Raises:
            ExpectationFailed: RUN-017.
        """
        if self.job.expect is None:
            return None
        starts = recorded_run.starts_by_topic(self.reading["offsets"])
        checkpoint = (self.local.environment.spec.buckets.checkpoints, self.checkpoint_folder)
        queries = [query for query in self.progress.readings if query not in ("", self.job.name)]
        further = [query.removeprefix(f"{self.job.name}.") for query in queries]
        recording = recorded_run.recording(self.local.s3, self.local.kafka.address, checkpoint, self.fed, starts, further)
        recording = replace(recording, records={**recording.records, **self.files})
        try:
            return self.job.expect(recording)
        except Exception as error:
            fault = ExpectationFailed(
                need=f"a function that returns; it raised {self._raised(error)}", fix=f"correct the function; {_LOGGED}"
            )
            raise self.job.spec.document.locate(fault, ("spec", "local", "expect")) from error

    @contextmanager
    def _cluster(self) -> Iterator[None]:
        """The master and the workers, if the job's executors are processes of their own."""
        with ExitStack() as held:
            if self.machine.size is not None:
                workers = counted(self.machine.executors, "worker")
                with self.steps.at("cluster", f"starting a Spark master and {workers}") as step:
                    self.cluster = held.enter_context(
                        SparkCluster(
                            self.folder / "spark",
                            executors=self.machine.executors,
                            size=self.machine.size,
                            environment=self.local.aws.environment(),
                            app_path=self.job.app_path,
                            port=self.master_port,
                        )
                    )
                    step.said = f"{self.cluster.url} with {workers}; UI at {self.cluster.ui}"
            yield

    def _driver(self) -> LocalDriver:
        return LocalDriver(
            self._configuration(),
            folder=self.folder,
            log=self.folder / "driver.log",
            environment=self.local.aws.environment(),
            grace_s=_GRACE_WITH_EXECUTORS_S if self.cluster else DRIVER_GRACE_S,
        )

    def _wait_until_reading(self, driver: LocalDriver) -> None:
        with self.steps.at("spark", f"starting {self.machine.master or 'the driver and its executors'}") as step:
            event = self._next(driver)
            self.progress.take(event)
            while not self.progress.reads:
                event = self._next(driver)
                self.progress.take(event)
            self.reading = self.progress.reading
            running_on = self._running_executors(self.cluster) if self.cluster else self.machine.master
            step.said = f"{running_on} is reading; Spark UI at {self.reading['ui']}"
        for sentence in self.progress.fixed_parallelism:
            self.steps.line("parallelism", sentence)

    def _running_executors(self, cluster: SparkCluster) -> str:
        """The registered executors, for people. The driver's session has waited for all of them.

        Raises:
            SparkClusterNotReady: RUN-041.
        """
        size, registered = cluster.size, cluster.wait_for_executors(_LATER_S)
        if registered < self.machine.executors:
            given = f"{registered} of {counted(self.machine.executors, 'executor')}"
            raise self._not_ready(cluster, given, f"executors that register with the driver within {cluster.start_limit_s:g} s")
        each = f"{counted(size.slots, 'slot')} and {size.heap_mib:,} MiB of heap"
        return f"a driver with {counted(registered, 'executor')} of {each}"

    def _not_ready(self, cluster: SparkCluster, given: str, need: str) -> SparkClusterNotReady:
        return SparkClusterNotReady(
            path=self.job.name, given=f"{given}; {cluster.last_words()}", need=need, fix="check their logs, and retry"
        )

    def _cluster_conf(self) -> dict[str, str]:
        return self.cluster.spark_conf if self.cluster else {}

    def _made(self, topic: str, records: Iterable[Record]) -> list[Record]:
        try:
            return list(records)
        except PenstockError:
            raise
        except Exception as error:
            fault = InputFailed(need=f"records; the generator raised {self._raised(error)}", fix=f"correct the generator; {_LOGGED}")
            raise self.job.spec.document.locate(fault, ("spec", "local", "input", topic)) from error

    def _raised(self, error: Exception) -> str:
        """What a function of the spec has raised, and where in the team's code; the whole traceback goes to a log of the run."""
        # Beside the run's folder, which only exists once the driver has been started.
        log = self.folder.with_name(f"{self.folder.name}-functions.log")
        with log.open("a", encoding="utf-8") as file:
            file.writelines(traceback.format_exception(error))
        return str(of_exception(error, OwnCode(tuple(folder.resolve() for folder in self.job.app_path))))

    def _configuration(self) -> RuntimeConfiguration:
        buckets = self.local.environment.spec.buckets
        return RuntimeConfiguration(
            spec=str(self.job.spec.path.resolve()),
            parallelism=self.job.spec.overriding_parallelism,
            app_path=tuple(str(folder.resolve()) for folder in self.job.app_path),
            package_path=tuple(str(folder) for folder in self.job.packages.path),
            master=self.cluster.url if self.cluster else self.machine.master,
            brokers=self.local.kafka.address,
            job_folder=f"s3a://{buckets.checkpoints}/{self.job.name}",
            plan=plan_hash(self.job.plan),
            output_bucket=buckets.output,
            connections=dict(self.connections),
            # The result is checked while the driver runs.
            close_when_idle=True,
            # No record of the input closes the last windows, but the clock.
            report_open_windows=self.job.spec.job.spec.follows_clock,
            progress_timeout_s=progress_timeout_s(self.job.spec.job.spec, self.job.plan),
            max_offsets_per_trigger=self.job.plan.max_offsets_per_trigger,
            spark_conf=self.job.plan.spark_conf | self._local_conf() | self._cluster_conf() | self.machine.spark_conf,
        )

    def _local_conf(self) -> dict[str, str]:
        region, jars = self.local.environment.spec.region, self.job.packages.jars
        return driver_conf.of_run(self.folder, self.local.aws.endpoint, region, jars)

    def _next(self, driver: LocalDriver) -> dict[str, Any]:
        """The driver's next event, while everything around it runs."""
        for _ in range(int(self.stall_limit_s / _LOOK_S)):
            self.check()
            event = driver.next_event(_LOOK_S)
            if event is not None:
                return event
        need = f"progress of the driver within {self.stall_limit_s:g} s"
        raise RunTooLong(path=self.job.name, need=need, fix=f"check {driver.log}")

    def _all_read(self, ends: Mapping[str, Mapping[str, int]]) -> bool:
        sources = self.job.spec.job.spec.sources
        lines = {name: self.lines.get(source.socket.connection, 0) for name, source in sources.items() if isinstance(source, FromSocket)}
        return self._read(ends) >= self._all() and all(self.progress.rows_in[name] >= count for name, count in lines.items())

    def _all(self) -> int:
        return sum(sum(fed.ends.values()) for fed in self.fed.values())

    def _read(self, ends: Mapping[str, Mapping[str, int]]) -> int:
        return sum(min(end, int(ends.get(topic, {}).get(str(n), 0))) for topic, fed in self.fed.items() for n, end in fed.ends.items())

    def _show(self, batch: Mapping[str, Any], committed: Mapping[str, Any], ends: Mapping[str, Mapping[str, int]]) -> None:
        self.micro_batches += 1
        self.processing_ms += committed["durationMs"]
        share = self._read(ends) / max(1, self._all())
        tags = "  ".join(f"{count:,} {tag}" for tag, count in sorted(batch["tags"].items())) or "no rows out"
        watermark = _watermark(batch["watermarks"]["inForceMs"])
        text = f"{share:4.0%} read  {committed['rows']:>7,} rows in {committed['durationMs'] / 1000:4.1f} s: {tags}{watermark}"
        query = f"{committed['query']}: " if "query" in committed else ""
        self.steps.line(f"batch {committed['batch']}", query + text)


def _watermark(current_ms: int | None) -> str:
    if current_ms is None:
        return ""
    return "  end of input" if current_ms == END_MS else f"  watermark {datetime.fromtimestamp(current_ms / 1000, UTC):%Y-%m-%d %H:%M:%S}"
