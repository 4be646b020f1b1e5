"""Runs the benchmark: ``./scripts/benchmark [--quick]``."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from benchmarks.streaming.contestants import flink
from benchmarks.streaming.latency import Latency
from benchmarks.streaming.results import RESULTS, Measured, Run, joined, machine, read, same, write
from benchmarks.streaming.round_result import Result
from benchmarks.streaming.rounds import CONTESTANTS, LATENT, Bench
from benchmarks.streaming.workload import Workload
from benchmarks.streaming.workloads import WORKLOADS
from penstock.scripts.progress import Steps
from penstock.sizing.errors import PenstockError

_ROUNDS = 5
# Of a quick run: a first impression, in which start and compilation weigh.
_QUICK_SHARE = 1 / 20
# Records a second.
_RATES = (1_000, 5_000)


def main() -> int:
    """Runs the rounds that are asked for and writes their results."""
    parser = _parser()
    arguments = parser.parse_args()
    steps = Steps()
    rounds = 1 if arguments.quick else arguments.rounds
    share = _QUICK_SHARE if arguments.quick else arguments.share
    measured: list[Measured] = []
    latencies: dict[str, list[Latency]] = {}
    here = machine()
    before = read(arguments.out) if arguments.add and arguments.out.is_file() else None
    if before is not None and not same(before.machine, here):
        parser.error(f"--add: {arguments.out} has results of another machine or other versions")
    try:
        if "flink" in arguments.contestant:
            flink.prepare(steps)
        with tempfile.TemporaryDirectory(prefix="penstock-benchmark-") as folder:
            for name in arguments.job:
                workload = WORKLOADS[name]
                # A broker for each job: the topics of the one before would be in its page cache and on the disk.
                with _bench(Path(folder) / name, arguments.out, steps) as bench:
                    measured.append(_measured(bench, workload, share, arguments.contestant, rounds))
                write(arguments.out, joined(before, Run(here, measured, latencies)))
            if arguments.latency:
                with _bench(Path(folder) / "latency", arguments.out, steps) as bench:
                    for contestant in (one for one in arguments.contestant if one in LATENT):
                        latencies[contestant] = bench.latencies(contestant, WORKLOADS["error_logs"], _RATES, 10 if arguments.quick else 60)
                write(arguments.out, joined(before, Run(here, measured, latencies)))
    except PenstockError as error:
        print(error.render(), file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print(f"interrupted; the jobs that were measured are in {arguments.out}", file=sys.stderr)
        return 130
    return 1 if any(result.wrong for one in measured for results in one.results.values() for result in results) else 0


def _bench(folder: Path, out: Path, steps: Steps) -> Bench:
    folder.mkdir()
    return Bench(folder, out.with_name(f"{out.stem}-logs"), steps)


def _measured(bench: Bench, workload: Workload, share: float, contestants: list[str], rounds: int) -> Measured:
    filled = bench.fill(workload, max(1_000, int(workload.records * share)))
    results: dict[str, list[Result]] = defaultdict(list)
    able = [name for name in contestants if name != "flink" or workload.flink is not None]
    for _ in range(rounds):
        for contestant in able:
            results[contestant].append(bench.run(contestant, filled))
    return Measured(workload=workload.name, what=workload.what, events=filled.events, results=dict(results), share=share)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scripts/benchmark", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one round of a twentieth of the records")
    parser.add_argument("--job", nargs="+", choices=tuple(WORKLOADS), default=list(WORKLOADS))
    parser.add_argument("--contestant", nargs="+", choices=tuple(CONTESTANTS), default=list(CONTESTANTS))
    parser.add_argument("--rounds", type=int, default=_ROUNDS, help=f"of each contestant (default: {_ROUNDS})")
    parser.add_argument("--share", type=float, default=1.0, help="of the records of a full run (default: 1)")
    parser.add_argument("--latency", action=argparse.BooleanOptionalAction, default=True, help="how long a row takes at fixed rates")
    parser.add_argument("--add", action="store_true", help="keep the results of other jobs that the file has")
    parser.add_argument("--out", type=Path, default=RESULTS, help="the file with the results")
    return parser


if __name__ == "__main__":
    sys.exit(main())
