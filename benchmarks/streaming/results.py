"""The results of a run as JSON, with the machine that they are from."""

from __future__ import annotations

import datetime as dt
import os
import platform
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path

from pydantic import TypeAdapter

from benchmarks.streaming.latency import Latency
from benchmarks.streaming.round_result import Result

RESULTS = Path(__file__).parents[1] / "results" / "streaming.json"


@dataclass(frozen=True)
class Machine:
    """What the figures depend on."""

    date: str
    cores: int
    memory_gib: float
    processor: str
    system: str
    java: str
    python: str
    pyspark: str


@dataclass(frozen=True)
class Measured:
    """The rounds of a job.

    Args:
        workload: the job.
        what: what it does.
        events: records of a round.
        results: contestant -> its results, in the order of the rounds.
        share: of the records of a full run.
        machine: where; None: on the machine of the file.
    """

    workload: str
    what: str
    events: int
    results: Mapping[str, Sequence[Result]]
    share: float = 1.0
    machine: Machine | None = None


@dataclass(frozen=True)
class Run:
    """A file of results.

    Args:
        machine: where what says nothing else was measured.
        measured: the jobs.
        latencies: contestant -> its latencies.
        latencies_machine: where those were measured; None: on the machine of the file.
    """

    machine: Machine
    measured: Sequence[Measured]
    latencies: Mapping[str, Sequence[Latency]] = field(default_factory=dict)
    latencies_machine: Machine | None = None

    def machine_of(self, one: Measured) -> Machine:
        """Where a job was measured."""
        return one.machine or self.machine


def machine() -> Machine:
    """This machine."""
    pages = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    said = subprocess.run(["java", "-version"], capture_output=True, text=True, check=True).stderr
    java = re.search(r'version "([^"]+)"', said)
    cpu = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.MULTILINE)
    return Machine(
        date=dt.datetime.now(dt.UTC).date().isoformat(),
        cores=os.cpu_count() or 1,
        memory_gib=round(pages / 2**30, 1),
        processor=cpu[1] if cpu else platform.machine(),
        system=f"{platform.system()} {platform.release()}",
        java=f"Java {java[1] if java else said.splitlines()[0]}",
        python=platform.python_version(),
        pyspark=version("pyspark"),
    )


def joined(before: Run | None, after: Run) -> Run:
    """Both; what was measured later takes the place of what was measured before.

    The contestants of a job are compared with each other, so all results of a job, and all latencies, are of one machine.

    Args:
        before: earlier results, perhaps of other machines; None if there are none.
        after: the later ones.
    """
    if before is None:
        return after
    again = {one.workload for one in after.measured}
    kept = [replace(one, machine=before.machine_of(one)) for one in before.measured if one.workload not in again]
    timed_on = before.latencies_machine or before.machine
    if not after.latencies:
        return Run(after.machine, [*kept, *after.measured], before.latencies, timed_on)
    together = {**before.latencies, **after.latencies} if same(timed_on, after.machine) else after.latencies
    return Run(after.machine, [*kept, *after.measured], together)


def same(one: Machine, other: Machine) -> bool:
    """Whether figures can be compared: all but the date is equal."""
    return replace(one, date=other.date) == other


def write(file: Path, run: Run) -> None:
    """Writes a file of results."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(TypeAdapter(Run).dump_json(run, indent=1) + b"\n")


def read(file: Path) -> Run:
    """Reads a file of results."""
    return TypeAdapter(Run).validate_json(file.read_bytes())
