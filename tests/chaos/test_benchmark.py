"""The benchmark as a developer runs it, with few records."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from benchmarks.streaming import results
from benchmarks.streaming.round_result import TOTAL
from penstock.scripts.layout import ROOT

RECORDS = 20_000
# Job -> its records: those of the topics, and one for each partition that closes the windows. The first job has four times as many as
# the others by default, and a thousand campaigns.
JOBS = {
    "ads_redis": 4 * RECORDS + 4 + 1_000 + 4,
    "error_logs": RECORDS,
    "tumbling": RECORDS + 4,
    "dedup": RECORDS + 4,
    "files": RECORDS + 4,
}
CONTESTANTS = ("penstock", "plain", "plain_keeping", "consumer")


@pytest.mark.timeout(3_600)
def test_every_contestant_writes_the_same_rows(tmp_path: Path) -> None:
    out, page = tmp_path / "results.json", tmp_path / "performance.md"
    options = ["--rounds", "1", "--share", str(RECORDS / 3_000_000), "--no-latency", "--out", str(out)]
    command = ["./scripts/benchmark", "--job", *JOBS, "--contestant", *CONTESTANTS, *options]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=3_000, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    measured = results.read(out).measured
    assert [(one.workload, one.events) for one in measured] == list(JOBS.items())
    for one in measured:
        assert set(one.results) == set(CONTESTANTS)
        assert [result.wrong for rounds in one.results.values() for result in rounds] == [()] * len(CONTESTANTS)
        assert all(result.total_cpu_s > 0 and result.peak_mib > 0 for rounds in one.results.values() for result in rounds)
        for contestant in ("penstock", "plain", "plain_keeping"):
            batches = one.results[contestant][0].micro_batches
            assert batches is not None
            assert batches.s3_requests > 0
            assert batches.phases_ms[TOTAL] > 0
    command = [str(ROOT / ".venv/bin/python"), "-m", "benchmarks.streaming.report", "--results", str(out), "--page", str(page)]
    subprocess.run(command, cwd=ROOT, check=True, timeout=600)
    assert all(f"## {job}" in page.read_text(encoding="utf-8") for job in JOBS)
    assert (tmp_path / "performance.svg").stat().st_size > 10_000
