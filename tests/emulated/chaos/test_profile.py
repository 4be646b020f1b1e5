"""`penstock profile` of a small job, as a user runs it: what it measures, what it refuses, and what is left of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from penstock.jobs.document import read
from penstock.jobs.spec import load
from penstock.jobs.spec.job_profile import Digest, parsed
from penstock.scripts.layout import ROOT
from tests.emulated.clicks import until, wait_until_gone
from tests.scripts.cli.called import penstock

# Two runs of a driver after another one, on a machine that others keep busy.
LIMIT_S = 550
APP = """
from penstock import Job, aggregate, tumbling

def build(job: Job) -> None:
    clicks = job.source("clicks", "user STRING NOT NULL, at STRING, page STRING")
    job.write(aggregate(clicks, tumbling("10s"), keys=["user"], views="count(*)").select(user="user", views="views"), "out")
    job.side_output("errors")
    job.side_output("late", "late")
"""
SPEC = """
apiVersion: penstock/v1
kind: StreamingJob
metadata: {name: clicks}
spec:
  app: clicks_app
  load: {eventsPerSecond: 1000, eventBytes: 80, profile: clicks.profile.json, state: {keys: 10000}}
  executor: {slots: 2}
  sources:
    clicks: {kafka: {topic: clicks}, time: {field: at, outOfOrderness: 10s}}
  sinks:
    out: {kafka: {topic: views}}
    errors: {kafka: {topic: clicks-errors}}
    late: {kafka: {topic: clicks-late}}
"""
QUICK = ("--slots", "1", "--seconds", "5", "--warm-up", "0.5", "--calibration-seconds", "1")


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """A job with state, whose spec names a profile that is not there yet, and a file of its records."""
    (tmp_path / "clicks_app.py").write_text(APP, encoding="utf-8")
    lines = [
        json.dumps({"user": f"user-{number % 50}", "at": f"2025-04-05T10:{number // 60:02d}:{number % 60:02d}Z", "page": "/"})
        for number in range(600)
    ]
    (tmp_path / "clicks.jsonl").write_text("\n".join(lines), encoding="utf-8")
    path = tmp_path / "clicks.yaml"
    path.write_text(SPEC, encoding="utf-8")
    return path


@contextmanager
def profiling(job: Path, temporary: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    variables = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(temporary), "AWS_EC2_METADATA_DISABLED": "true"}
    command = [sys.executable, "-m", "penstock.scripts", "profile", *words]
    with subprocess.Popen(
        command, cwd=job.parent, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8"
    ) as running:
        try:
            yield running
        finally:
            running.kill()


def test_a_job_is_measured_and_sized_with_what_was_measured(job: Path, temporary: Path) -> None:
    out = job.with_name("clicks.profile.json")
    with profiling(job, temporary, job.name, "--input", "clicks.jsonl", "--out", out.name, *QUICK) as running:
        _, said = running.communicate(timeout=LIMIT_S)
        assert running.returncode == 0, said
    profile = parsed(read(out))
    measured = profile.measured
    assert (profile.job, profile.digest) == ("clicks", Digest.of(load(job), []))
    assert [run.slots for run in profile.runs] == [1]
    assert profile.runs[0].micro_batches >= 4
    # A CPU second is no more than a second of a core, and the job's processes need one.
    assert measured.events_per_cpu_s is not None and measured.events_per_cpu_s.typical > 0
    assert profile.runs[0].busy_cores is not None and profile.runs[0].others_busy_cores is not None
    assert profile.runs[0].busy_cores > 0.01
    assert measured.restart_s is not None and measured.restart_s.typical > 1
    # A row has the window, the user and the count: more than the user alone, less than a record.
    assert measured.bytes_per_key is not None and 10 < measured.bytes_per_key.typical < 400
    assert profile.state_rows is not None and profile.state_rows >= 50
    assert measured.machine is not None and measured.machine.events_per_cpu_s.low > 0
    sized = penstock("size", job.name, "--no-check", "-o", "json", cwd=job.parent)
    assert (sized.returncode, sized.stderr) == (0, "")
    plan = json.loads(sized.stdout)
    assert plan["throughput"]["basis"] == "measured"
    assert plan["state"]["stateBytes"] >= 10_000 * int(measured.bytes_per_key.typical)
    with profiling(job, temporary, "--calibrate", "--into", out.name, "--calibration-seconds", "1") as running:
        _, said = running.communicate(timeout=LIMIT_S)
        assert running.returncode == 0, said
    again = parsed(read(out))
    # The same machine, as if it were another one: the rest of the profile is as it was.
    assert [one.cores for one in again.measured.calibrated] == [measured.machine.cores]
    assert again.model_copy(update={"measured": again.measured.model_copy(update={"calibrated": ()})}) == profile
    assert list(temporary.iterdir()) == []
    wait_until_gone(temporary)


def test_records_that_the_job_quarantines_are_no_input(job: Path, temporary: Path) -> None:
    job.with_name("broken.jsonl").write_text("not JSON\n" * 100, encoding="utf-8")
    with profiling(job, temporary, job.name, "--input", "broken.jsonl", *QUICK) as running:
        _, said = running.communicate(timeout=LIMIT_S)
    assert running.returncode == 2, said
    assert "error[PROF-005]" in said and "it has quarantined all that it has read" in said
    assert not list(job.parent.glob("*profile.json*")) and not list(job.parent.glob("*unfinished"))


def test_an_interrupted_measurement_leaves_nothing(job: Path, temporary: Path) -> None:
    with profiling(job, temporary, job.name, "--input", "clicks.jsonl", *QUICK) as running:
        until(running, r"^  try ")
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=LIMIT_S)
    assert running.returncode == 130
    assert not list(job.parent.glob("*profile.json*")) and not list(job.parent.glob("*unfinished"))
    assert list(temporary.iterdir()) == []
    wait_until_gone(temporary)
