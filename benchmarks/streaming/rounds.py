"""Rounds of the contestants: each in turn, on the same topics, with the same rows to come out."""

from __future__ import annotations

import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3

from benchmarks.streaming import credit_service, topics
from benchmarks.streaming.contestants.consumer import consumer
from benchmarks.streaming.contestants.flink import flink
from benchmarks.streaming.contestants.place import CHECKPOINTS, OUTPUT, Place
from benchmarks.streaming.contestants.spark import RunningDriver, penstock, plain
from benchmarks.streaming.latency import Arrivals, Latency, Sender, latency, no_latency
from benchmarks.streaming.round_result import Result, failed, medians, reason
from benchmarks.streaming.s3_requests import CountedS3
from benchmarks.streaming.workload import PARTITIONS, Backend, Rows, Workload, canonical, row
from penstock.scripts import layout
from penstock.scripts.emulation.emulated_aws import EmulatedAws
from penstock.scripts.local import kafka_topics, recorded_run
from penstock.scripts.local.kafka_broker import KafkaBroker
from penstock.scripts.local.servers.http_endpoint import HttpEndpoint
from penstock.scripts.local.servers.redis_server import RedisServer
from penstock.scripts.process.process_tree import ProcessTree
from penstock.scripts.progress import Steps

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

# Contestant -> what it is.
CONTESTANTS = {
    "penstock": "Penstock",
    "penstock_memory": "Penstock with `state: {backend: memory}`",
    "plain": "PySpark, which drops what does not parse",
    "plain_keeping": "PySpark, with a second query that keeps what does not parse",
    "flink": "PyFlink SQL, which drops what does not parse; its state is on the heap, Flink's default",
    "flink_rocksdb": "the same with its state in RocksDB, as Penstock and PySpark have theirs",
    "consumer": "a JVM that only reads the topic",
}
# Those whose latency is measured.
LATENT = ("penstock", "plain", "flink")
# Contestants with their state in the backend that is not their default.
_BACKENDS: Mapping[str, Backend] = {"penstock_memory": "memory", "flink_rocksdb": "rocksdb"}
# A contestant that brings no more rows for so long has not got them all.
_STALL_S = 240.0
_LOOK_S = 0.05
# The consumer says nothing until it has read the topic, which takes seconds.
_CONSUMED_S = 600.0
# After the last row, for more than there should be.
_MORE_S = 2.0
# After the last row, for the last records that do not parse.
_KEPT_S = 60.0
# Before this share of the rows, code is still being compiled.
_WARM_FROM = 1 / 3


@dataclass(frozen=True)
class Mark:
    """How far a contestant was at a moment: seconds since its start, its CPU seconds, and the share of its work that is done."""

    at_s: float
    cpu_s: float
    done: float


@dataclass
class Filled:
    """A workload whose topics are filled."""

    workload: Workload
    records: int
    events: int
    topics: Mapping[str, str]
    expected: Rows
    # Records that do not parse.
    broken: int = 0
    rounds: Iterator[int] = field(default_factory=lambda: iter(range(1, 1_000_000)))


def takes_part(contestant: str, workload: Workload) -> bool:
    """Whether a contestant has the job: SQL can't say each, and not each has state that may be in either backend."""
    able = workload.flink is not None or not contestant.startswith("flink")
    return able and (workload.either_backend or contestant not in _BACKENDS)


class Bench:
    """A broker and an emulated S3 for all rounds; a context manager.

    Args:
        folder: an existing folder.
        logs: where the logs of rounds that do not count are kept; made when there are any.
        steps: shows progress.
    """

    def __init__(self, folder: Path, logs: Path, steps: Steps) -> None:
        self._folder = folder
        self._logs = logs
        self._steps = steps
        self._kafka = KafkaBroker(folder=folder / "kafka", log=folder / "kafka.log")
        self._aws = EmulatedAws(log=folder / "aws.log")
        self._redis = RedisServer(folder / "redis", log=folder / "redis.log")
        self._service = HttpEndpoint(folder / "service", credit_service.FUNCTION, [layout.ROOT], log=folder / "service.log")
        self._held = ExitStack()

    def __enter__(self) -> Bench:
        with ExitStack() as held:
            held.enter_context(self._kafka)
            held.enter_context(self._aws)
            held.enter_context(self._redis)
            held.enter_context(self._service)
            self._counted = held.enter_context(CountedS3(self._aws.endpoint))
            for bucket in (CHECKPOINTS, OUTPUT):
                self.s3.create_bucket(Bucket=bucket)
            self._held = held.pop_all()
        return self

    def __exit__(self, *error: Any) -> None:
        self._held.close()

    @property
    def broker(self) -> int:
        """The process of the broker."""
        return self._kafka.pid

    @property
    def s3(self) -> S3Client:
        """A client of the emulated S3."""
        own = self._aws.environment()
        keys = {"aws_access_key_id": own["AWS_ACCESS_KEY_ID"], "aws_secret_access_key": own["AWS_SECRET_ACCESS_KEY"]}
        return boto3.client("s3", endpoint_url=self._aws.endpoint, region_name=own["AWS_REGION"], **keys)  # type: ignore[call-overload, no-any-return]

    def fill(self, workload: Workload, records: int) -> Filled:
        """Fills a workload's topics."""
        names = {source: f"{workload.name}-{source}" for source in workload.inputs}
        events = broken = 0
        for source, given in workload.inputs.items():
            with self._steps.at("topic", f"{names[source]}") as step:
                count, of_them = topics.fill(self._kafka.address, names[source], given, records, lambda _: None)
                step.said = f"{names[source]} has {count:,} records"
            events += count
            broken += of_them
        return Filled(workload, records, events, names, workload.expected(records), broken)

    def run(self, contestant: str, filled: Filled) -> Result:
        """One round of a contestant; if it fails, a result that says why."""
        name = f"{filled.workload.name}-{contestant}-{next(filled.rounds)}"
        with self._steps.at("round", f"{filled.workload.name}: {contestant}") as step:
            try:
                place = self.place(contestant, filled.workload, name, filled.records, filled.topics)
                result = self._consumed(place) if contestant == "consumer" else self._contended(_START[contestant], place, filled)
            except Exception as error:
                result = failed(filled.events, error)
            step.said = _said(contestant, filled.workload.name, result)
        if result.wrong:
            self._keep_logs(name)
        return result

    def latencies(self, contestant: str, workload: Workload, rates: Sequence[int], seconds: float) -> list[Latency]:
        """How long rows take at each rate, in one run of a contestant.

        Args:
            contestant: which.
            workload: one that writes a row for each line of its only input.
            rates: records a second, each after the other.
            seconds: how long at each rate, after half as long for warming up.
        """
        summaries: list[Latency] = []
        try:
            place = self.place(contestant, workload, f"latency-{contestant}", 1_000_000)
            (topic,) = place.topics.values()
            sender = Sender(self._kafka.address, topic, PARTITIONS)
            with _START[contestant](place) as running, Arrivals(self._kafka.address, place.out) as arrivals:
                # Until the first row is there, the contestant starts.
                sender.send()
                _arrived(arrivals, sender.sent, running)
                for rate in rates:
                    with self._steps.at("latency", f"{contestant} at {rate:,} records/s") as step:
                        sender.send_at(rate, seconds / 2)
                        before = len(_arrived(arrivals, sender.sent, running))
                        sender.send_at(rate, seconds)
                        summaries.append(latency(rate, _arrived(arrivals, sender.sent, running)[before:]))
                        step.said = f"{contestant} at {summaries[-1].said()}"
        except Exception as error:
            summaries += [no_latency(rate, reason(error)) for rate in rates[len(summaries) :]]
            self._steps.line("latency", f"{contestant} at {summaries[-1].said()}")
            self._keep_logs(f"latency-{contestant}")
        return summaries

    def _keep_logs(self, name: str) -> None:
        for log in self._own(name).glob("*.log"):
            self._logs.mkdir(parents=True, exist_ok=True)
            shutil.copy(log, self._logs / f"{name}.{log.name}")

    def _own(self, name: str) -> Path:
        return self._folder / name.replace("_", "-")

    def place(self, contestant: str, workload: Workload, name: str, records: int, topics_: Mapping[str, str] | None = None) -> Place:
        """A place of its own: without topics that are filled, with empty ones."""
        folder = self._own(name)
        folder.mkdir()
        name = folder.name
        errors = None if contestant in _DROPPING else f"{name}-errors"
        own = {source: f"{name}-{source}" for source in workload.inputs} if topics_ is None else {}
        kafka_topics.create(self._kafka.address, dict.fromkeys(own.values(), PARTITIONS) | {topic: 2 for topic in (name, errors) if topic})
        return Place(
            workload=workload,
            records=records,
            topics=own if topics_ is None else topics_,
            out=name,
            errors=errors,
            brokers=self._kafka.address,
            redis=self._redis.url,
            service=self._service.url,
            s3=self._counted.endpoint,
            s3_requests=lambda: self._counted.requests,
            credentials=self._aws.environment(),
            folder=folder,
            backend=_BACKENDS.get(contestant),
        )

    def _consumed(self, place: Place) -> Result:
        started = time.monotonic()
        with consumer(place) as running, ProcessTree(running.pid) as tree:
            cpu_s = 0.0
            while not running.done():
                if time.monotonic() - started > _CONSUMED_S:
                    raise TimeoutError(f"the topic was not read within {_CONSUMED_S:.0f} s")
                cpu_s = max(cpu_s, tree.cpu_s())
                time.sleep(_LOOK_S)
            total_s = time.monotonic() - started
            return Result(place.records, total_s, cpu_s, place.records / total_s, place.records / cpu_s, tree.peak_mib)

    def _contended(self, start: _Start, place: Place, filled: Filled) -> Result:
        watched = _Watched(filled.expected.total())
        with start(place) as running, ProcessTree(running.pid) as tree:
            watched.begin(tree)
            if place.workload.output == "topic":
                with topics.Reader(self._kafka.address, place.out, watched.seen) as reader:
                    watched.wait(running)
                    # For rows that should not be there.
                    time.sleep(_MORE_S)
                rows = reader.rows()
            else:
                assert isinstance(running, RunningDriver)
                watched.follow(running, filled.events)
                rows = self._files(place) if place.workload.output == "files" else self._hashes(place)
            # Of one that has lost rows, that is enough.
            wrong = _differences(filled.expected, rows) or self._not_kept(place, filled.broken)
        result = watched.result(filled, tree.peak_mib, wrong)
        return replace(result, micro_batches=medians(running.micro_batches)) if isinstance(running, RunningDriver) else result

    def _not_kept(self, place: Place, broken: int) -> tuple[str, ...]:
        """What is wrong with the records that do not parse, of a contestant that keeps them; it has some time for the last ones."""
        if place.errors is None:
            return ()
        limit_s = time.monotonic() + _KEPT_S
        while (kept := recorded_run.count_records(self._kafka.address, place.errors)) < broken and time.monotonic() < limit_s:
            time.sleep(1)
        return () if kept == broken else (f"{kept:,} records in {place.errors}, and {broken:,} do not parse",)

    def _hashes(self, place: Place) -> Rows:
        hashes = self._redis.hashes(f"{place.out}:*").values()
        # All that Redis keeps is text.
        return Counter(row(**{name: int(text) if text.isdecimal() else text for name, text in fields.items()}) for fields in hashes)

    def _files(self, place: Place) -> Rows:
        files = [one for one in recorded_run.output_files(self.s3, OUTPUT, place.out) if not _hidden(one.key)]
        return Counter(map(canonical, recorded_run.output_rows(self.s3, OUTPUT, files)))


def _hidden(key: str) -> bool:
    """Whether readers of a folder skip a file: Spark's file sink keeps a log in ``_spark_metadata``."""
    return any(part.startswith(("_", ".")) for part in key.split("/"))


# Contestants that drop what does not parse.
_DROPPING = frozenset({"plain", "flink", "flink_rocksdb", "consumer"})
_Start = Callable[[Place], AbstractContextManager[Any]]
_START: dict[str, _Start] = {
    "penstock": penstock,
    "penstock_memory": penstock,
    "plain": plain,
    "plain_keeping": plain,
    "flink": flink,
    "flink_rocksdb": flink,
}


class _Watched:
    """The marks of a round."""

    def __init__(self, expected: int) -> None:
        self._expected = expected
        self._marks: list[Mark] = []
        self._all = threading.Event()

    def begin(self, tree: ProcessTree) -> None:
        self._tree = tree
        self._started = time.monotonic()

    def seen(self, rows: int) -> None:
        self.mark(rows / self._expected)

    def mark(self, done: float) -> None:
        self._marks.append(Mark(time.monotonic() - self._started, self._tree.cpu_s(), done))
        if done >= 1:
            self._all.set()

    def wait(self, running: Any) -> None:
        """Until all rows are there, or nothing has come for long.

        Raises:
            Exception: the contestant has failed.
        """
        while not self._all.wait(1):
            last_s = self._marks[-1].at_s if self._marks else 0.0
            if running.failure is not None:
                raise running.failure
            if time.monotonic() - self._started - last_s > _STALL_S:
                return

    def follow(self, running: RunningDriver, events: int) -> None:
        """The same by what the driver says of its input: files are seen only when they are closed, and hashes change."""
        records, last_s = 0, time.monotonic()
        while not running.idle.wait(_LOOK_S):
            if running.failure is not None:
                raise running.failure
            if running.records > records:
                records, last_s = running.records, time.monotonic()
                self.mark(min(records / events, 0.999))
            elif time.monotonic() - last_s > _STALL_S:
                return
        self.mark(1.0)

    def result(self, filled: Filled, peak_mib: float, wrong: tuple[str, ...]) -> Result:
        marks = self._marks or [Mark(_STALL_S, self._tree.cpu_s(), 0.0)]
        last = next((mark for mark in marks if mark.done >= 1), marks[-1])
        first = next((mark for mark in marks if mark.done >= _WARM_FROM), last)
        events = filled.events * (last.done - first.done)
        warm_s, warm_cpu_s = last.at_s - first.at_s, last.cpu_s - first.cpu_s
        return Result(
            events=filled.events,
            total_s=last.at_s,
            total_cpu_s=last.cpu_s,
            warm_events_per_s=events / warm_s if warm_s else 0.0,
            warm_events_per_cpu_s=events / warm_cpu_s if warm_cpu_s else 0.0,
            peak_mib=peak_mib,
            wrong=wrong,
        )


def _arrived(arrivals: Arrivals, rows: int, running: Any) -> list[float]:
    """How long each of so many rows took.

    Raises:
        Exception: the contestant has failed, or rows are missing for long.
    """
    limit_s = time.monotonic() + _STALL_S
    while len(waits_ms := arrivals.wait_for(rows, 1)) < rows:
        if running.failure is not None:
            raise running.failure
        if time.monotonic() > limit_s:
            raise TimeoutError(f"{len(waits_ms):,} of {rows:,} rows have come")
    return waits_ms


def _differences(expected: Rows, rows: Rows) -> tuple[str, ...]:
    lost, more = expected - rows, rows - expected
    told = [("lost", lost), ("too many", more)]
    return tuple(f"{counted.total():,} rows {what}, such as {next(iter(counted))}" for what, counted in told if counted)


def _said(contestant: str, workload: str, result: Result) -> str:
    wrong = f"; WRONG: {'; '.join(result.wrong)}" if result.wrong else ""
    if not result.total_s:
        return f"{workload}: {contestant:<13} no figures{wrong}"
    return (
        f"{workload}: {contestant:<13} {result.events / result.total_s:>9,.0f} events/s, {result.events_per_cpu_s:>9,.0f} per CPU second; "
        f"warm {result.warm_events_per_s:>9,.0f} and {result.warm_events_per_cpu_s:>9,.0f}; {result.peak_mib:,.0f} MiB{wrong}"
    )
