"""Startup of `penstock size` compared with importing its libraries: ``python -m benchmarks.size_start [--rounds N]``.

Measures the CPU time of each process, user and system, which depends less on other load than wall-clock time. The commands run alternately,
after a warm-up round that also compiles the modules where needed.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys

from penstock.scripts.layout import ROOT

COMMANDS = {
    "import pydantic, yaml": ["-c", "import pydantic, yaml"],
    "import BaseModel, yaml": ["-c", "from pydantic import BaseModel; import yaml"],
    "penstock size": ["-m", "penstock.scripts", "size", "jobs/specs/user_credit.yaml"],
}


def main() -> None:
    """Prints a table: CPU seconds, with the minimum, the median and the maximum of the rounds, and the medians relative to the first."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15, help="how many (default: 15)")
    rounds = parser.parse_args().rounds
    seconds: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(rounds + 1):
        for name, words in COMMANDS.items():
            seconds[name].append(_cpu_s(words))
    first = statistics.median(seconds[next(iter(COMMANDS))][1:])
    for name, (_, *measured) in seconds.items():
        median = statistics.median(measured)
        print(f"{name:<24} {min(measured):6.3f} {median:6.3f} {max(measured):6.3f} s  {median / first:4.1f} times")


def _cpu_s(words: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    # Otherwise each run would compile all of Penstock, but none of its libraries.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, *words]
    subprocess.run(command, cwd=ROOT, env={**environment, "PYTHONPATH": str(ROOT)}, stdout=subprocess.DEVNULL, check=True, timeout=120)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
