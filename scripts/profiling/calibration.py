"""How fast this machine is: rounds of a fixed work, in a process of its own, for about a minute."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from penstock.scripts.errors import DriverDied
from penstock.scripts.layout import python_path
from penstock.scripts.process.process_tree import ProcessTree
from penstock.scripts.profiling import machine
from penstock.scripts.progress import Steps
from penstock.sizing.load.measured_job import CALIBRATION_VERSION, CalibratedMachine
from penstock.sizing.load.spread import Spread

WORK = "penstock.scripts.profiling.calibration_work"
DEFAULT_S = 60.0
# Ours: by then most of the code is compiled.
_WARM_UP_SHARE = 1 / 3
_LEAST_ROUNDS = 3


def calibrated(steps: Steps, seconds: float = DEFAULT_S) -> CalibratedMachine:
    """Calibrates this machine.

    Args:
        steps: shows progress.
        seconds: how long, with Spark's start; never less than four rounds.

    Raises:
        DriverDied: RUN-014, the work has ended with an error.
    """
    name, cores = machine.name(), machine.cores()
    with steps.at("calibrate", f"{name}, {cores} cores: a fixed work for about {seconds:g} s") as step:
        rates = _rates(seconds, lambda rounds: step.watch(f"{name}: {rounds} rounds"))
        found = CalibratedMachine(name=name, cores=cores, version=CALIBRATION_VERSION, events_per_cpu_s=Spread.of(rates))
        spread = found.events_per_cpu_s
        step.said = f"{name}, {cores} cores: {spread.typical:,.0f} records per CPU second, {spread.low:,.0f} to {spread.high:,.0f}"
    return found


def _rates(seconds: float, shown: Callable[[int], None]) -> list[float]:
    """Records per CPU second of each round that counts."""
    began_s, rounds = time.monotonic(), list[tuple[float, float]]()
    variables = {**os.environ, "PYTHONPATH": python_path()}
    with tempfile.TemporaryDirectory(prefix="penstock-calibration-") as folder, (Path(folder) / "log").open("wb") as log:
        command = [sys.executable, "-m", WORK]
        with subprocess.Popen(command, env=variables, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log) as work:
            assert work.stdin is not None
            assert work.stdout is not None
            tree = ProcessTree(work.pid)
            try:
                before_s = 0.0
                for line in work.stdout:
                    cpu_s, now_s = tree.cpu_s(), time.monotonic()
                    rounds.append((now_s - began_s, json.loads(line)["records"] / max(cpu_s - before_s, 1e-3)))
                    before_s = cpu_s
                    shown(len(rounds))
                    if now_s - began_s >= seconds and len(rounds) > _LEAST_ROUNDS:
                        break
                    work.stdin.write(b"\n")
                    work.stdin.flush()
            finally:
                work.stdin.close()
                work.terminate()
        if len(rounds) <= _LEAST_ROUNDS:
            said = (Path(folder) / "log").read_text(encoding="utf-8", errors="replace")[-2000:]
            raise DriverDied(path="calibration", given=said, need="work that runs to its end", fix="check Java: penstock doctor")
    warm = [rate for at_s, rate in rounds if at_s >= seconds * _WARM_UP_SHARE]
    return warm if len(warm) >= _LEAST_ROUNDS else [rate for _, rate in rounds[-_LEAST_ROUNDS:]]
