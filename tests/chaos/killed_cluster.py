"""A job on Spark's standalone cluster whose executors are killed, one after another, while rows come in."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from penstock.jobs.local.recording import Record
from penstock.scripts.local import kafka_topics
from penstock.scripts.local.spark_cluster import ExecutorSize, SparkCluster, SparkWorker
from tests.chaos import doomed_executor, processes
from tests.chaos.event_log import SparkEvents
from tests.chaos.executor_gate import ExecutorGate, RequestTrap
from tests.chaos.executor_traps import Caught, Traps, until
from tests.chaos.killed_job import DoomedDriver, Job

Victim = Literal["own", "other", "two", "all", "jvm", "node", "other nodes"]
# Rows of a micro-batch, over all partitions of a source.
ROWS_A_BATCH = 100
# A point is reached within so many times that rows come in.
_FEEDS = 6
# No driver says nothing for this long where all is well, with an executor to start and a busy machine.
LIMIT_S = 600
SIZE = ExecutorSize(slots=1, heap_mib=512, overhead_mib=384)


@dataclass(frozen=True)
class Strike:
    """What is killed, and when.

    Args:
        point: one of `doomed_executor.POINTS`, or a request of an executor to S3, a regular expression of method and path.
        call: at which of such calls, from 1.
        after: of a request, whether S3 has answered it.
        victim: ``own``: the executor that came to the point; ``other``: one that did not; ``two``: both; ``all``: all at
            once; ``jvm``: only its JVM, so that its Python worker goes on until it notices; ``node``: its worker too, with the disk, and
            another is added; ``other nodes``: all but that.
    """

    point: str
    call: int = 1
    after: bool = False
    victim: Victim = "own"

    @property
    def name(self) -> str:
        """In a table."""
        where = self.point if self.point in doomed_executor.POINTS else f"{'after' if self.after else 'before'} {self.point}"
        return f"{where}, call {self.call}"


@dataclass(frozen=True)
class Struck:
    """How the job came through a strike.

    Args:
        strike: what was killed.
        at_s: epoch seconds of the kill.
        recovery_s: from the kill to the next committed micro-batch.
    """

    strike: Strike
    at_s: float
    recovery_s: float

    def back_s(self, events: SparkEvents) -> float | None:
        """Seconds from the kill until the driver had an executor in the place of the killed one; None if it got none."""
        return next((added_s - self.at_s for added_s in events.added_s if added_s > self.at_s), None)


Feed = Callable[[], Mapping[str, Iterable[Record]]]


@dataclass
class KilledCluster:
    """A running job on a running cluster.

    Args:
        job: with its spec; its topics exist.
        folder: an existing empty folder.
        feed: the next rows, some micro-batches of them: topic -> records with their partitions.
        executors: how many.
        conf: further settings of Spark.
        doom: of its driver, see `tests.chaos.doomed_driver`.

    Attributes:
        struck: what it came through so far.
        record: the last record of a micro-batch.
        undisturbed_s: how long micro-batches with rows took while nothing was killed.
    """

    job: Job
    folder: Path
    feed: Feed
    executors: int = 2
    conf: Mapping[str, str] = field(default_factory=dict)
    doom: Mapping[str, Any] = field(default_factory=dict)
    struck: list[Struck] = field(default_factory=list)
    record: dict[str, Any] = field(default_factory=dict)
    undisturbed_s: list[float] = field(default_factory=list)
    commits: int = 0
    _quiet: bool = False
    _ends: dict[str, dict[str, int]] = field(default_factory=dict)
    _committed: dict[str, dict[str, int]] = field(default_factory=dict)

    def __enter__(self) -> Self:
        for name in ("traps", "events"):
            (self.folder / name).mkdir()
        self.traps = Traps(self.folder / "traps")
        self.gate = ExecutorGate(self.job.aws.endpoint, lambda: self.cluster.executor_pids()).__enter__()
        environment = {
            **self.job.aws.environment(),
            "AWS_ENDPOINT_URL": self.gate.endpoint,
            doomed_executor.VARIABLE: str(self.traps.folder),
        }
        self.cluster = SparkCluster(self.folder / "spark", executors=self.executors, size=SIZE, environment=environment).start()
        self.job.master, self.job.endpoint = self.cluster.url, self.gate.endpoint
        self.job.spark_conf = {**self.cluster.spark_conf, **_CONF, "spark.eventLog.dir": (self.folder / "events").as_uri(), **self.conf}
        self.driver: DoomedDriver = self.job.driver(**self.doom)
        self.driver.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.driver.stop()
        self.cluster.stop()
        self.gate.__exit__(kind, error, trace)

    def strike(self, *strikes: Strike) -> None:
        """Lets rows come in, kills at one point after another, and waits until all is committed and all executors are back."""
        killed: list[tuple[Strike, float]] = []
        gone: set[int] = set()
        for strike in strikes:
            caught = self.catch(strike)
            killed.append((strike, time.monotonic()))
            some = self._kill(strike.victim, caught)
            gone |= some
            # A killed executor's request has not reached S3, or its answer not the executor.
            self._release(forward=caught.executor not in some)
        self._recovered(killed, gone)

    def freeze(self, strike: Strike) -> None:
        """Lets rows come in and stops a node at the point until its tasks have run elsewhere; then it goes on with what it was doing.

        The Python worker wakes first, the node's other processes when it is done: so it has all the time that it needs.
        """
        caught = self.catch(strike)
        at_s = time.monotonic()
        node = self.worker_of(caught.executor)
        frozen = [node.pid, *processes.tree(caught.executor)]
        processes.send(signal.SIGSTOP, frozen)
        if self._request is None:
            self.traps.release()
        recovery_s = self._next_commit(at_s)
        if self._request is None:
            processes.send(signal.SIGCONT, [caught.worker])
            until(lambda: self.traps.done, LIMIT_S, "the frozen worker has gone on")
        else:
            self._request.release(forward=True)
        processes.send(signal.SIGCONT, frozen)
        self._recovered([(strike, at_s)], {caught.executor}, recovery_s)

    def outrun(self, strike: Strike) -> None:
        """Lets rows come in and holds a worker at the point, until another attempt of its task comes as far; then both go on."""
        self.catch(strike)
        at_s = time.monotonic()
        until(lambda: self.traps.overtaken, LIMIT_S, "another attempt at the same point")
        self.traps.release()
        self._recovered([(strike, at_s)], set())

    def notice(self, strike: Strike, notice_s: float) -> None:
        """Lets rows come in, decommissions the executor at the point, as a spot notice does, and kills its node when the notice has passed.

        Recovery is counted from the kill.
        """
        caught = self.catch(strike)
        node, until_s = self.worker_of(caught.executor), time.monotonic() + notice_s
        processes.send(signal.SIGPWR, [caught.executor])
        self._release(forward=True)
        self.drain(lambda: time.monotonic() > until_s)
        at_s = time.monotonic()
        self.let_in()
        self.cluster.kill_worker(node)
        self.cluster.add_worker()
        self._recovered([(strike, at_s)], {caught.executor})

    def _recovered(self, killed: Sequence[tuple[Strike, float]], gone: Collection[int], recovery_s: float | None = None) -> None:
        """Waits until all is committed, and other executors have come in the place of those that are gone."""
        last_s = killed[-1][1]
        recovered_s = last_s + (self._next_commit(last_s) if recovery_s is None else recovery_s)
        until(lambda: self._all_back(gone), LIMIT_S, "executors in the place of the lost ones")
        self.drain(self.all_committed)
        epoch_s = time.time() - time.monotonic()
        for strike, at_s in killed:
            self.struck.append(Struck(strike, epoch_s + at_s, recovered_s - at_s))
            print(f"{strike.name:<62} {strike.victim:<11} {recovered_s - at_s:6.1f} s", flush=True)

    def _next_commit(self, since_s: float) -> float:
        # Of the micro-batch before the one that was hit the driver may have told by now.
        while (event := self.driver.next_event(0)) is not None:
            self._take(event)
        commits = self.commits
        self.drain(lambda: self.commits > commits)
        return time.monotonic() - since_s

    def _all_back(self, gone: Collection[int]) -> bool:
        now = self.cluster.executor_pids()
        return len(now) == self.executors and not set(now) & set(gone)

    def catch(self, strike: Strike) -> Caught:
        """Lets rows come in until an executor stands at the point."""
        self._arm(strike)
        for _ in range(_FEEDS):
            self.drain(lambda: self._caught() is not None or self.all_committed())
            if (caught := self._caught()) is not None:
                return caught
            self.let_in()
        raise AssertionError(f"no executor came to the point: {strike}")

    def let_in(self) -> None:
        """Feeds the next rows."""
        self._let_in(self.feed())

    def _let_in(self, rows: Mapping[str, Iterable[Record]]) -> None:
        for topic, records in rows.items():
            known = self._ends.setdefault(topic, {})
            some = list(records)
            kafka_topics.feed(self.job.kafka.address, topic, 2, some, lambda _: None)
            for record in some:
                known[str(record.partition)] = known.get(str(record.partition), 0) + 1

    def finish(self, last: Mapping[str, Iterable[Record]] | None = None) -> None:
        """Lets rows come in undisturbed, and waits until the driver has nothing left to do.

        Args:
            last: rows that come after all others.
        """
        self._quiet = True
        for _ in range(2):
            self.let_in()
            self.drain(self.all_committed)
        self._quiet = False
        self._let_in(last or {})
        self.drain(self.all_committed)
        while self._event(LIMIT_S)["event"] != "idle":
            pass
        self.driver.stop()

    def events(self) -> SparkEvents:
        """What Spark tells of it, once the driver has ended."""
        return SparkEvents.read(self.folder / "events")

    def drain(self, done: Callable[[], bool]) -> None:
        """Takes the driver's events until something is so."""
        end_s = time.monotonic() + LIMIT_S
        while not done():
            if (event := self.driver.next_event(0.05)) is not None:
                self._take(event)
                end_s = time.monotonic() + LIMIT_S
            assert time.monotonic() < end_s, f"the driver reported nothing for {LIMIT_S} s; see {self.driver.log}"

    def all_committed(self) -> bool:
        """Whether all rows that came in are committed."""
        return all(
            self._committed.get(topic, {}).get(number, 0) >= end for topic, ends in self._ends.items() for number, end in ends.items()
        )

    def worker_of(self, executor: int) -> SparkWorker:
        """The worker of an executor."""
        worker = next((worker for worker in self.cluster.workers if executor in worker.executor_pids()), None)
        assert worker is not None, f"executor {executor} has ended by itself; see {self.folder}"
        return worker

    def _arm(self, strike: Strike) -> None:
        self._request = None
        if strike.point in doomed_executor.POINTS:
            self.traps.arm(strike.point, strike.call)
        else:
            self._request = RequestTrap(strike.point, strike.call, strike.after)
            self.gate.arm(self._request)

    def _caught(self) -> Caught | None:
        if self._request is None:
            return self.traps.caught()
        return Caught(worker=0, executor=self._request.executor or 0) if self._request.caught else None

    def _release(self, *, forward: bool) -> None:
        if self._request is None:
            self.traps.release()
        else:
            self._request.release(forward=forward)

    def _kill(self, victim: Victim, caught: Caught) -> set[int]:
        """Kills what a strike is about; the executors that are gone by then."""
        own, others = caught.executor, [pid for pid in self.cluster.executor_pids() if pid != caught.executor]
        gone = {"other": others[:1], "other nodes": others, "two": [own, *others[:1]], "all": [own, *others]}.get(victim, [own])
        if victim == "jvm":
            processes.send(signal.SIGKILL, gone)
        elif victim in ("node", "other nodes"):
            self._lose_nodes(gone)
        else:
            for pid in gone:
                processes.kill(pid)
        return set(gone)

    def _lose_nodes(self, executors: Sequence[int]) -> None:
        for worker in [self.worker_of(executor) for executor in executors]:
            self.cluster.kill_worker(worker)
        for _ in executors:
            self.cluster.add_worker()

    def _event(self, limit_s: float) -> dict[str, Any]:
        event = self.driver.next_event(limit_s)
        assert event is not None, f"the driver reported nothing for {limit_s} s; see {self.driver.log}"
        self._take(event)
        return event

    def _take(self, event: dict[str, Any]) -> None:
        if event["event"] == "batch":
            self.record = event
        elif event["event"] == "committed":
            self.commits += 1
            if self._quiet and event["rows"]:
                self.undisturbed_s.append(event["durationMs"] / 1000)
            for topic, ends in event["ends"].items():
                self._committed.setdefault(topic, {}).update(ends)


_CONF = {
    "spark.python.daemon.module": "tests.chaos.doomed_executor",
    # So that a task reads several batches, and can die between two.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10",
    "spark.eventLog.enabled": "true",
    "spark.eventLog.rolling.enabled": "false",
    "spark.eventLog.compress": "false",
}
