"""Runs the benchmark: ``./scripts/benchmark [--quick]``."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from benchmarks.streaming.contestants import flink
from benchmarks.streaming.latency import Latency
from benchmarks.streaming.results import RESULTS, Measured, Run, joined, machine, read, write
from benchmarks.streaming.round_result import Result, reason
from benchmarks.streaming.rounds import CONTESTANTS, LATENT, Bench, takes_part
from benchmarks.streaming.workload import Workload
from benchmarks.streaming.workloads import WORKLOADS
from penstock.scripts.progress import Steps
from penstock.sizing.errors import PenstockError

_ROUNDS = 5
# Of a quick run: a first impression, in which start and compilation weigh.
_QUICK_SHARE = 1 / 20
# Records a second, and how long at each rate.
_RATES = (1_000, 5_000)
_LATENCY_S, _QUICK_LATENCY_S = 60, 10


def main() -> int:
    """Runs the rounds that are asked for and writes their results."""
    arguments = _parser().parse_args()
    before = read(arguments.out) if arguments.add and arguments.out.is_file() else None
    try:
        with tempfile.TemporaryDirectory(prefix="penstock-benchmark-") as folder:
            return _run(arguments, Path(folder), lambda run: write(arguments.out, joined(before, run)), Run(machine(), [], {}))
    except PenstockError as error:
        print(error.render(), file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print(f"interrupted; the jobs that were measured are in {arguments.out}", file=sys.stderr)
        return 130


def _run(arguments: argparse.Namespace, folder: Path, keep: Callable[[Run], None], run: Run) -> int:
    """All rounds; the results are kept after each job.

    Returns:
        The exit code: 1 if anything that was asked for has no figures.
    """
    steps = Steps()
    if {"flink", "flink_rocksdb"} & set(arguments.contestant):
        flink.prepare(steps)
    missed = False
    for name in arguments.job:
        try:
            # A broker for each job: the topics of the one before would be in its page cache and on the disk.
            with _bench(folder / name, arguments.out, steps) as bench:
                run = replace(run, measured=[*run.measured, _measured(bench, WORKLOADS[name], arguments)])
        except Exception as error:
            # Such as a broker that did not start on a busy machine: the other jobs may be measured.
            steps.line("job", f"{name}: not measured: {reason(error)}")
            missed = True
        keep(run)
    if arguments.latency:
        with _bench(folder / "latency", arguments.out, steps) as bench:
            run = replace(run, latencies=_latencies(bench, arguments))
        keep(run)
    wrong = any(result.wrong for one in run.measured for results in one.results.values() for result in results)
    return 1 if missed or wrong or any(one.wrong for latencies in run.latencies.values() for one in latencies) else 0


def _latencies(bench: Bench, arguments: argparse.Namespace) -> dict[str, list[Latency]]:
    contestants = [one for one in arguments.contestant if one in LATENT]
    seconds = _QUICK_LATENCY_S if arguments.quick else _LATENCY_S
    return {one: bench.latencies(one, WORKLOADS["error_logs"], arguments.rate, seconds) for one in contestants}


def _bench(folder: Path, out: Path, steps: Steps) -> Bench:
    folder.mkdir()
    return Bench(folder, out.with_name(f"{out.stem}-logs"), steps)


def _measured(bench: Bench, workload: Workload, arguments: argparse.Namespace) -> Measured:
    share, rounds = (_QUICK_SHARE, 1) if arguments.quick else (arguments.share, arguments.rounds)
    filled = bench.fill(workload, max(1_000, int(workload.records * share)))
    results: dict[str, list[Result]] = defaultdict(list)
    able = [name for name in arguments.contestant if takes_part(name, workload)]
    for _ in range(rounds):
        for contestant in able:
            results[contestant].append(bench.run(contestant, filled))
    return Measured(workload=workload.name, what=workload.what, events=filled.events, results=dict(results), share=share)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scripts/benchmark", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one round of a twentieth of the records")
    parser.add_argument("--job", nargs="*", choices=tuple(WORKLOADS), default=list(WORKLOADS), help="none: only the latency")
    parser.add_argument("--contestant", nargs="+", choices=tuple(CONTESTANTS), default=list(CONTESTANTS))
    parser.add_argument("--rounds", type=int, default=_ROUNDS, help=f"of each contestant (default: {_ROUNDS})")
    parser.add_argument("--share", type=float, default=1.0, help="of the records of a full run (default: 1)")
    parser.add_argument("--latency", action=argparse.BooleanOptionalAction, default=True, help="how long a row takes at fixed rates")
    parser.add_argument("--rate", nargs="+", type=int, default=list(_RATES), help="records a second (default: %(default)s)")
    parser.add_argument("--add", action="store_true", help="keep the results of other jobs that the file has, each with its machine")
    parser.add_argument("--out", type=Path, default=RESULTS, help="the file with the results")
    return parser


if __name__ == "__main__":
    sys.exit(main())
