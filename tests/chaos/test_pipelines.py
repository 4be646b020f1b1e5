"""Every pipeline that is shipped, run as a person runs it: its input on real Kafka, its result against the independent computation."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.jobs.spec import load
from penstock.scripts.layout import ROOT

SPECS = sorted((ROOT / "jobs/specs").glob("*.yaml"))
# One `penstock up` runs several; those that read the same topic can't share one, for each has an input of its own.
ENVIRONMENTS = 5
# A pipeline takes a minute and its environment another; no machine that these tests run on takes five times as long.
LIMIT_S = 300


def _shared_out() -> list[list[Path]]:
    """The specs by environment, each in the one with the fewest that has none of its topics."""
    groups: list[list[Path]] = [[] for _ in range(ENVIRONMENTS)]
    taken: list[set[str]] = [set() for _ in groups]
    for spec in SPECS:
        topics = set(load(spec).job.topics())
        free = [number for number, others in enumerate(taken) if not topics & others]
        number = min(free, key=lambda one: len(groups[one]))
        groups[number].append(spec)
        taken[number] |= topics
    return groups


@pytest.mark.timeout(LIMIT_S * len(SPECS))
@pytest.mark.parametrize("specs", _shared_out(), ids=lambda specs: "+".join(path.stem for path in specs))
def test_pipelines_give_every_row_that_their_oracles_compute(specs: list[Path]) -> None:
    for spec in specs:
        assert load(spec).job.spec.local.expect, f"{spec.stem}: without an expectation a run would be held against its own counts alone"
    command = [sys.executable, "-m", "penstock.scripts", "up", *map(str, specs)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_S * (1 + len(specs)), check=False)
    result = ran.stdout + ran.stderr
    assert ran.returncode == 0, result
    jobs = re.split(r"^job ", result, flags=re.MULTILINE)[1:]
    assert len(jobs) == len(specs), result
    for job in jobs:
        assert re.search(r"^  verdict +correct: ", job, re.MULTILINE), job
        rows = re.search(r"^  out +([\d,]+) rows", job, re.MULTILINE)
        assert rows and rows[1] != "0", job
