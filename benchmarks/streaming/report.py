"""Writes the page with the results: ``python -m benchmarks.streaming.report``."""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from benchmarks.streaming import plots
from benchmarks.streaming.results import RESULTS, Machine, Measured, Run, read, same
from benchmarks.streaming.round_result import TOTAL, MicroBatches, Result
from benchmarks.streaming.rounds import CONTESTANTS, LATENT, takes_part
from benchmarks.streaming.workloads import WORKLOADS
from penstock.scripts.layout import ROOT

PAGE = ROOT / "docs" / "performance.md"
PLOT = "performance.svg"
# What the others are compared with: plain PySpark that does all that Penstock does, and plain PySpark that does less.
BASES = ("plain_keeping", "plain")
_NONE = "-"

_HEAD = """\
# Performance
Penstock beside plain PySpark and PyFlink SQL on the same jobs: a real Kafka broker whose topics are filled once, JSON records, checkpoints
on s3a (Flink's on the disk), results to Kafka. The contestants take turns, each round in a process of its own; what each writes is read
back and compared row by row with a result that is computed without a stream processor, and a round with a wrong row does not count
([decision 0031](decisions/0031-benchmark.md)). One record in a thousand does not parse; a contestant that keeps such records must have
kept each of them. This page is written by

```sh
./scripts/benchmark
.venv/bin/python -m benchmarks.streaming.report
```

`./scripts/benchmark --quick` takes a twentieth of the records and one round: a first impression.
"""
_NO_RESULTS = """\
**There are no results yet.** Nothing on this page has been measured; the commands above replace it.
"""
_HOW_TO_READ = """\
*After the start* is the time from the first third of the rows on: code is compiled by then. The CPU time is that of the contestant's
processes, without the broker's and S3's. Requests to S3 pass a proxy that counts them, which takes some 2 ms for each. Each figure is the
median of the rounds, with the lowest and the highest. *To plain* is the median of events per CPU second divided by plain PySpark's: above
1, the contestant needs less CPU time.
"""


def page(run: Run | None) -> str:
    """The page; None: without results."""
    if run is None or not (run.measured or run.latencies):
        return f"{_HEAD}\n{_NO_RESULTS}"
    plot = [f"![Events per CPU second by job and contestant]({PLOT})", ""] if run.measured else []
    contestants = ["| contestant | what it is |", "|---|---|", *(f"| {name} | {what} |" for name, what in CONTESTANTS.items())]
    jobs = [line for one in sorted(run.measured, key=_place) for line in _job(one)]
    opening = [_HEAD, *_reduced(run), *_machines(run), *plot, *contestants, "", _HOW_TO_READ]
    return "\n".join([*opening, *_missing(run), *jobs, *_latencies(run)]).rstrip("\n") + "\n"


def _place(one: Measured) -> int:
    return list(WORKLOADS).index(one.workload)


def _reduced(run: Run) -> Iterator[str]:
    """A warning where a run is no full one: with fewer records, start and compilation weigh more."""
    reduced = [f"`{one.workload}` with {one.share:.1%}" for one in sorted(run.measured, key=_place) if one.share < 1]
    if reduced:
        yield f"**Not a full run** of {', '.join(reduced)} of the records: start and compilation weigh in the figures.\n"


def _machines(run: Run) -> Iterator[str]:
    """What was measured where; without the jobs where it was one machine."""
    groups: list[list[tuple[Machine, str]]] = []
    for machine, what in _measured_on(run):
        group = next((group for group in groups if same(machine, group[0][0])), None)
        if group is None:
            groups.append(group := [])
        group.append((machine, what))
    if len(groups) > 1:
        yield "Not all jobs were measured on the same machine: compare the contestants of a job, not the jobs.\n"
    for group in groups:
        where = _machine(group[0][0], sorted({machine.date for machine, _ in group}))
        yield f"{', '.join(what for _, what in group)}: {where}\n" if len(groups) > 1 else f"{where[0].upper()}{where[1:]}\n"


def _measured_on(run: Run) -> Iterator[tuple[Machine, str]]:
    for one in run.measured:
        yield run.machine_of(one), f"`{one.workload}`"
    if run.latencies:
        yield run.latencies_machine or run.machine, "the latency"


def _machine(machine: Machine, dates: Sequence[str]) -> str:
    return (
        f"measured on {' and '.join(dates)} on {machine.cores} cores ({machine.processor}) and {machine.memory_gib:g} GiB, "
        f"{machine.system}, {machine.java}, Python {machine.python}, PySpark {machine.pyspark}, with two tasks at a time and C2."
    )


def _missing(run: Run) -> Iterator[str]:
    missing = [name for name in WORKLOADS if name not in {one.workload for one in run.measured}]
    if missing:
        yield f"There are no results of {', '.join(f'`{name}`' for name in missing)}.\n"


def _job(one: Measured) -> Iterator[str]:
    workload = WORKLOADS[one.workload]
    rounds = max((len(results) for results in one.results.values()), default=0)
    yield from (
        f"## {one.workload}",
        f"{workload.what[0].upper()}{workload.what[1:]}: {one.events:,} records, {rounds} {'round' if rounds == 1 else 'rounds'}.",
        "",
        "| contestant | events per CPU second, after the start | to plain_keeping | to plain | events/s, after the start "
        "| CPU seconds, all | seconds, all | MiB |",
        "|---|---|---|---|---|---|---|---|",
    )
    yield from (_row(contestant, one) for contestant in CONTESTANTS if takes_part(contestant, workload))
    yield from ("", *_notes(one), *_micro_batches(one))


def _row(contestant: str, one: Measured) -> str:
    right = _right(one, contestant)
    if not right:
        why = "no round counts" if one.results.get(contestant) else "no results"
        return f"| {contestant} | {why} | | | | | | |"
    first, *others = (_shown(right, value) for value in _COLUMNS)
    ratios = [_ratio(right, _right(one, base)) for base in BASES]
    return f"| {contestant} | {' | '.join([first, *ratios, *others])} |"


def _notes(one: Measured) -> Iterator[str]:
    """The rounds that do not count, and what SQL cannot say."""
    if WORKLOADS[one.workload].flink is None:
        yield "PyFlink SQL has no counterpart of this job.\n"
    for contestant, results in one.results.items():
        wrong = [result for result in results if result.wrong]
        if wrong:
            yield f"{len(wrong)} of {len(results)} rounds of {contestant} do not count: `{wrong[0].wrong[0]}`.\n"


def _micro_batches(one: Measured) -> Iterator[str]:
    """Phases and requests of Spark's micro-batches, in milliseconds: medians of the rounds' medians."""
    by_contestant = {contestant: _of_rounds(_right(one, contestant)) for contestant in one.results}
    shown = {contestant: batches for contestant, batches in by_contestant.items() if batches is not None}
    if not shown:
        return
    others = {phase: max(batches.phases_ms.get(phase, 0) for batches in shown.values()) for phase in _phases(shown.values()) - {TOTAL}}
    phases = [TOTAL, *sorted(others, key=lambda phase: (-others[phase], phase))]
    yield from (
        "A micro-batch with records, median:",
        "",
        f"| contestant | micro-batches | records | S3 requests | {' | '.join(f'{phase}, ms' for phase in phases)} |",
        f"|---|---|---|---|{'---|' * len(phases)}",
    )
    for contestant, batches in shown.items():
        cells = [f"{batches.phases_ms[phase]:,.0f}" if phase in batches.phases_ms else _NONE for phase in phases]
        yield f"| {contestant} | {batches.count} | {batches.rows:,.0f} | {batches.s3_requests:,.0f} | {' | '.join(cells)} |"
    yield ""


def _of_rounds(results: Sequence[Result]) -> MicroBatches | None:
    batches = [result.micro_batches for result in results if result.micro_batches is not None]
    if not batches:
        return None
    return MicroBatches(
        count=round(statistics.median(one.count for one in batches)),
        rows=statistics.median(one.rows for one in batches),
        phases_ms={phase: statistics.median(one.phases_ms.get(phase, 0) for one in batches) for phase in _phases(batches)},
        s3_requests=statistics.median(one.s3_requests for one in batches),
    )


def _phases(batches: Iterable[MicroBatches]) -> set[str]:
    return {phase for one in batches for phase in one.phases_ms}


def _latencies(run: Run) -> Iterator[str]:
    yield from (
        "## Latency",
        "From the moment in which a record is sent until its row can be read (committed), of the job `error_logs`, where each record",
        "is an error.",
        "",
        "| contestant | records/s | p50, ms | p99, ms | longest, ms |",
        "|---|---|---|---|---|",
    )
    for contestant in LATENT:
        for one in run.latencies.get(contestant, ()):
            figures = f"no figures: `{one.wrong}` | |" if one.wrong else f"{one.p50_ms:,.0f} | {one.p99_ms:,.0f} | {one.longest_ms:,.0f}"
            yield f"| {contestant} | {one.rate:,} | {figures} |"
        if not run.latencies.get(contestant):
            yield f"| {contestant} | no results | | | |"


def _right(one: Measured, contestant: str) -> list[Result]:
    return [result for result in one.results.get(contestant, ()) if not result.wrong]


_COLUMNS: tuple[Callable[[Result], float], ...] = (
    lambda result: result.warm_events_per_cpu_s,
    lambda result: result.warm_events_per_s,
    lambda result: result.total_cpu_s,
    lambda result: result.total_s,
    lambda result: result.peak_mib,
)


def _shown(results: Sequence[Result], value: Callable[[Result], float]) -> str:
    values = [value(result) for result in results]
    median = statistics.median(values)
    if not median:
        return _NONE
    return f"{median:,.0f}" if len(values) == 1 else f"{median:,.0f} ({min(values):,.0f} to {max(values):,.0f})"


def _ratio(results: Sequence[Result], base: Sequence[Result]) -> str:
    """Events per CPU second after the start, as a multiple of another contestant's."""
    of, to = (statistics.median(one.warm_events_per_cpu_s for one in rounds) if rounds else 0.0 for rounds in (results, base))
    return f"{of / to:.2f}" if of and to else _NONE


def main() -> None:
    """Writes the page and its plot."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.streaming.report", description=__doc__)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--page", type=Path, default=PAGE)
    arguments = parser.parse_args()
    run = read(arguments.results) if arguments.results.is_file() else None
    arguments.page.write_text(page(run), encoding="utf-8")
    if run is not None and run.measured:
        plots.draw(arguments.results, arguments.page.with_name(PLOT))


if __name__ == "__main__":
    main()
