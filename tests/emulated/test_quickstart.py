"""The README's first command, word for word."""

from __future__ import annotations

import subprocess

import pytest

from penstock.scripts.layout import ROOT

pytestmark = pytest.mark.emulated


@pytest.mark.timeout(1200)
def test_quickstart_runs_both_jobs_and_every_count_is_right() -> None:
    ran = subprocess.run(["./scripts/quickstart"], cwd=ROOT, capture_output=True, text=True, timeout=1100, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr.count("verdict     correct") == 2
    assert "all rows and side outputs match the expected results computed from the recorded input" in ran.stderr
    assert "1,006,643 rows" in ran.stderr
    assert "matched flights, sum of distance, sum of temp, sum of precip match the expected results computed without Spark" in ran.stderr
