"""Every pipeline that is shipped, run as a person runs it: its input on real Kafka, its result against the independent computation."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from jobs.spec import load
from scripts.layout import ROOT

SPECS = sorted((ROOT / "jobs/specs").glob("*.yaml"))
# A run takes two minutes, most of them for the buckets; no machine that these tests run on takes ten.
PATIENCE_S = 600


@pytest.mark.parametrize("spec", SPECS, ids=lambda path: path.stem)
def test_a_pipeline_gives_every_row_that_its_oracle_computes(spec: Path) -> None:
    assert load(spec).job.spec.local.expect, "without an expectation a run would be held against its own counts alone"
    command = [sys.executable, "-m", "scripts", "up", str(spec)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    told = ran.stdout + ran.stderr
    assert ran.returncode == 0, told
    assert re.search(r"^  verdict +right: ", told, re.MULTILINE), told
    rows = re.search(r"^  out +([\d,]+) rows", told, re.MULTILINE)
    assert rows and rows[1] != "0", told
