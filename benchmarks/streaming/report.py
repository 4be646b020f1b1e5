"""Writes the page with the results: ``python -m benchmarks.streaming.report``."""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from benchmarks.streaming import plots
from benchmarks.streaming.results import RESULTS, Machine, Measured, Run, read
from benchmarks.streaming.rounds import CONTESTANTS, Result
from benchmarks.streaming.workloads import WORKLOADS
from penstock.scripts.layout import ROOT

PAGE = ROOT / "docs" / "performance.md"
PLOT = "performance.svg"

_HEAD = """\
# Performance
Penstock beside plain PySpark and PyFlink SQL on the same jobs: a real Kafka broker whose topics are filled once, JSON records, checkpoints
on s3a (Flink's on the disk), results to Kafka. The contestants take turns, each round in a process of its own; what each writes is read
back and compared row by row with a result that is computed without a stream processor, and a round with a wrong row does not count.
Written by

```sh
./scripts/benchmark
.venv/bin/python -m benchmarks.streaming.report
```

`./scripts/benchmark --quick` takes a twentieth of the records and one round: a first impression.
"""


def page(run: Run) -> str:
    """The page."""
    return "\n".join(
        [_HEAD, _machine(run.machine), "", f"![Events per CPU second by job and contestant]({PLOT})", "", *_jobs(run), *_latencies(run), ""]
    )


def _machine(machine: Machine) -> str:
    return (
        f"Measured on {machine.date} on {machine.cores} cores ({machine.processor}) and {machine.memory_gib:g} GiB, {machine.system}, "
        f"{machine.java}, Python {machine.python}, PySpark {machine.pyspark}, with two tasks at a time and C2."
    )


def _jobs(run: Run) -> Iterator[str]:
    yield from (
        "| contestant | what it is |",
        "|---|---|",
        *(f"| {name} | {what} |" for name, what in CONTESTANTS.items()),
        "",
        "*After the start* is the time from the first third of the rows on: code is compiled by then. The CPU time is that of the",
        "contestant's processes, without the broker's and S3's. Each figure is the median of the rounds, with the lowest and the highest.",
        "",
    )
    for one in run.measured:
        yield from _job(one)


def _latencies(run: Run) -> Iterator[str]:
    if not run.latencies:
        return
    yield from (
        "## Latency",
        "From the moment in which a record is sent until its row can be read (committed), of the job `error_logs`, where each record",
        "is an error.",
        "",
        "| contestant | records/s | p50, ms | p99, ms | longest, ms |",
        "|---|---|---|---|---|",
    )
    for contestant, summaries in run.latencies.items():
        yield from (f"| {contestant} | {one.rate:,} | {one.p50_ms:,.0f} | {one.p99_ms:,.0f} | {one.longest_ms:,.0f} |" for one in summaries)


def _job(one: Measured) -> Iterator[str]:
    rounds = max(len(results) for results in one.results.values())
    yield from (
        f"## {one.workload}",
        f"{WORKLOADS[one.workload].what[0].upper()}{WORKLOADS[one.workload].what[1:]}: {one.events:,} records, {rounds} rounds.",
        "",
        "| contestant | events per CPU second, after the start | events/s, after the start | CPU seconds, all | seconds, all | MiB |",
        "|---|---|---|---|---|---|",
    )
    for contestant, results in one.results.items():
        right = [result for result in results if not result.wrong]
        if not right:
            yield f"| {contestant} | wrong: {results[0].wrong[0]} | | | | |"
            continue
        cells = [_shown(right, value) for value in _COLUMNS]
        yield f"| {contestant} | {' | '.join(cells)} |"
    yield ""


_COLUMNS: tuple[Callable[[Result], float], ...] = (
    lambda result: result.warm_events_per_cpu_s,
    lambda result: result.warm_events_per_s,
    lambda result: result.total_cpu_s,
    lambda result: result.total_s,
    lambda result: result.peak_mib,
)


def _shown(results: Sequence[Result], value: Callable[[Result], float]) -> str:
    values = [value(result) for result in results]
    median = f"{statistics.median(values):,.0f}"
    return median if len(values) == 1 else f"{median} ({min(values):,.0f} to {max(values):,.0f})"


def main() -> None:
    """Writes the page and its plot."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.streaming.report", description=__doc__)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--page", type=Path, default=PAGE)
    arguments = parser.parse_args()
    arguments.page.write_text(page(read(arguments.results)), encoding="utf-8")
    plots.draw(arguments.results, arguments.page.with_name(PLOT))


if __name__ == "__main__":
    main()
