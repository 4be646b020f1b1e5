"""What a small micro-batch costs, in Penstock and in plain PySpark: ``python -m benchmarks.small_batches [--batches N] [--warm-up N]``.

Two jobs: one record of a job without state, and four records of one with windows, a minute of event time later each time, so that a window
closes in every fifth. Both contestants run all the time, each with topics and S3 of its own, and get their records in turn: nothing is
sent before the other is idle.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from confluent_kafka import Producer

from benchmarks.streaming.contestants.place import Place
from benchmarks.streaming.contestants.spark import RunningDriver, penstock, plain
from benchmarks.streaming.round_result import TOTAL, MicroBatch, medians
from benchmarks.streaming.rounds import Bench
from benchmarks.streaming.s3_requests import CountedS3
from benchmarks.streaming.workload import BEGIN_MS
from benchmarks.streaming.workloads import WORKLOADS
from penstock.scripts.process.process_tree import ProcessTree
from penstock.scripts.progress import Steps

_CONTESTANTS = {"penstock": penstock, "plain": plain}
# Job -> records of a micro-batch.
_JOBS = {"error_logs": 1, "tumbling": 4}
_STEP_MS = 60_000
_LIMIT_S = 240.0
_LOOK_S = 0.005


@dataclass(frozen=True)
class Cost:
    """What one turn cost a contestant: its micro-batches until it was idle again.

    Args:
        wall_s: from sending the records until the micro-batch that read them was committed.
        cpu_s: of its processes, until it was idle.
        requests: to S3, until it was idle.
        batch: the micro-batch that read the records.
    """

    wall_s: float
    cpu_s: float
    requests: int
    batch: MicroBatch


class Turns:
    """A contestant that is given records when its turn comes.

    Args:
        place: where it runs.
        running: its driver.
        tree: its processes.
        records: how many it gets at a time.
    """

    def __init__(self, place: Place, running: RunningDriver, tree: ProcessTree, records: int) -> None:
        self._place, self._running, self._tree, self._records = place, running, tree, records
        # All records of a turn in one request, so that one micro-batch reads them.
        self._producer = Producer({"bootstrap.servers": place.brokers, "linger.ms": 20, "log_level": 0})
        self._turn = 0

    def take(self) -> Cost:
        """One turn."""
        before_s, requests, done = self._tree.cpu_s(), self._place.s3_requests(), len(self._running.micro_batches)
        began_s = time.monotonic()
        self._send()
        wanted = self._records * self._turn
        self._wait(lambda: self._running.records >= wanted)
        wall_s = time.monotonic() - began_s
        self._running.idle.clear()
        self._wait(self._running.idle.is_set)
        filled = [one for one in self._running.micro_batches[done:] if one.rows]
        return Cost(wall_s, self._tree.cpu_s() - before_s, self._place.s3_requests() - requests, filled[-1])

    def _send(self) -> None:
        (topic,) = self._place.topics.values()
        at = datetime.fromtimestamp((BEGIN_MS + self._turn * _STEP_MS) / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        self._turn += 1
        for number in range(self._records):
            value = f'{{"region_code":"ERROR-{number}","unique_session_token":"t","impressions":{number},"at":"{at}"}}'
            self._producer.produce(topic, value.encode(), partition=number)
        self._producer.flush(60)

    def _wait(self, until: Callable[[], bool]) -> None:
        limit_s = time.monotonic() + _LIMIT_S
        while not until():
            if self._running.failure is not None:
                raise self._running.failure
            if time.monotonic() > limit_s:
                raise TimeoutError(f"no micro-batch within {_LIMIT_S:.0f} s")
            time.sleep(_LOOK_S)


@contextmanager
def _contestant(bench: Bench, name: str, job: str) -> Iterator[Turns]:
    place = bench.place(name, WORKLOADS[job], f"{job}-{name}", 1_000_000)
    with CountedS3(place.s3) as counted:
        own = replace(place, s3=counted.endpoint, s3_requests=lambda: counted.requests)
        with _CONTESTANTS[name](own) as running, ProcessTree(running.pid) as tree:
            yield Turns(own, running, tree, _JOBS[job])


def _measured(bench: Bench, job: str, warm_up: int, batches: int) -> dict[str, list[Cost]]:
    costs: dict[str, list[Cost]] = {name: [] for name in _CONTESTANTS}
    with ExitStack() as held:
        turns = {name: held.enter_context(_contestant(bench, name, job)) for name in _CONTESTANTS}
        for number in range(warm_up + batches):
            for name, its in turns.items():
                cost = its.take()
                if number >= warm_up:
                    costs[name].append(cost)
    return costs


def _shown(job: str, costs: dict[str, list[Cost]]) -> Iterator[str]:
    """A line for each figure: both contestants, and how many times plain's it is."""
    sides = [costs[name] for name in _CONTESTANTS]
    phases = [summary.phases_ms for its in sides if (summary := medians([cost.batch for cost in its]))]
    yield f"{job}, {_JOBS[job]} records a micro-batch, {len(sides[0])} micro-batches{'':<12} {'Penstock':>9} {'plain':>9} {'ratio':>6}"
    yield _line("sent until committed, ms, median", [statistics.median(cost.wall_s for cost in its) * 1000 for its in sides])
    for phase in sorted({TOTAL, *phases[0]}, key=lambda one: (one != TOTAL, one)):
        yield _line(f"  {phase}, ms, median", [of.get(phase, 0.0) for of in phases])
    yield _line("CPU until idle, ms, median", [statistics.median(cost.cpu_s for cost in its) * 1000 for its in sides])
    yield _line("S3 requests until idle, mean", [statistics.mean(cost.requests for cost in its) for its in sides])


def _line(what: str, values: Sequence[float]) -> str:
    ours, plains = values
    ratio = f"{ours / plains:.2f}" if plains else "-"
    return f"{what:<58} {ours:>9.1f} {plains:>9.1f} {ratio:>6}"


def main() -> None:
    """Prints both side by side."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=100, help="measured of each contestant (default: 100)")
    parser.add_argument("--warm-up", type=int, default=100, help="before them (default: 100)")
    parser.add_argument("--job", nargs="+", choices=tuple(_JOBS), default=list(_JOBS))
    arguments = parser.parse_args()
    with ExitStack() as held:
        folder = Path(held.enter_context(tempfile.TemporaryDirectory(prefix="penstock-small-batches-")))
        bench = held.enter_context(Bench(folder, folder / "logs", Steps()))
        for job in arguments.job:
            print("\n".join(_shown(job, _measured(bench, job, arguments.warm_up, arguments.batches))), flush=True)


if __name__ == "__main__":
    main()
