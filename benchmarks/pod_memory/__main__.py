"""Runs the benchmark: ``python -m benchmarks.pod_memory [--job NAME...] [--seconds N]``. Linux, as root.

Each job runs on two executors of Spark's standalone cluster, with pods sized by the plan for a load: the driver and the executors each in a
control group with the plan's limit, where the kernel kills what exceeds it, and with the JVM options of the pods. Measured over a time of
full load, with the state filled, and by default with heaps whose pages are all touched. docs/sizing.md has the results.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from pathlib import Path

from benchmarks.pod_memory.measured_jobs import JOBS
from benchmarks.pod_memory.report import PodMemory, joined, summary, table
from benchmarks.pod_memory.run import MeasuredRun, measure
from benchmarks.streaming.results import machine
from benchmarks.streaming.rounds import Bench
from penstock.scripts.local import class_data
from penstock.scripts.progress import Steps
from penstock.sizing.errors import PenstockError

RESULTS = Path(__file__).parents[1] / "results" / "pod_memory.json"


def main() -> int:
    """Measures the jobs that are asked for and writes their results."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pod_memory", description=__doc__)
    parser.add_argument("--job", nargs="+", choices=tuple(JOBS), default=list(JOBS))
    parser.add_argument("--seconds", type=float, default=120, help="of full load (default: %(default)s)")
    parser.add_argument("--share", type=float, default=1.0, help="of the records of the topics (default: 1)")
    parser.add_argument("--heap-as-used", action="store_true", help="leave it to the JVMs which pages of their heaps they touch")
    parser.add_argument("--out", type=Path, default=RESULTS, help="the file with the results; those of other jobs in it are kept")
    parser.add_argument("--tables", action="store_true", help="only print the tables of the file")
    arguments = parser.parse_args()
    if arguments.tables:
        print(summary(PodMemory.model_validate_json(arguments.out.read_bytes())))
        return 0
    # As Ctrl-C: what was started is ended, and the control groups are removed.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    steps = Steps()
    try:
        class_data.make(steps)
        for name in arguments.job:
            run = _measured(name, arguments, steps)
            _keep(arguments.out, PodMemory(machine=machine(), runs=[run]))
            print(table(run), flush=True)
    except PenstockError as error:
        print(error.render(), file=sys.stderr)
        return error.exit_code
    return 0


def _measured(name: str, arguments: argparse.Namespace, steps: Steps) -> MeasuredRun:
    logs = arguments.out.with_name("pod_memory-logs")
    with tempfile.TemporaryDirectory(prefix="penstock-benchmark-") as folder, Bench(Path(folder), logs, steps) as bench:
        return measure(bench, name, arguments.seconds, steps, share=arguments.share, full_heap=not arguments.heap_as_used)


def _keep(file: Path, measured: PodMemory) -> None:
    before = PodMemory.model_validate_json(file.read_bytes()) if file.is_file() else None
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(joined(before, measured).model_dump_json(indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
