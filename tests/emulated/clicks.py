"""A job in a folder of its own, beside nothing of this repo, and `penstock up` of it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

from penstock.scripts.layout import ROOT

# All of a run on a busy machine with two cores.
LIMIT_S = 400
APP = """
from penstock.jobs.job import Job

def build(job: Job) -> None:
    clicks = job.source("clicks", "user STRING NOT NULL, at STRING, page STRING")
    job.write(clicks.filter("page <> '/health'").select(user="user", page="page"), "out")
    job.side_output("errors")
"""
SPEC = """
apiVersion: penstock/v1
kind: StreamingJob
metadata: {name: clicks}
spec:
  app: clicks_app
  parallelism: 2
  executor: {slots: 2, memory: 2g}
  trigger: 1s
  sources:
    clicks: {kafka: {topic: clicks, partitions: 2}, time: {field: at, outOfOrderness: 10s}}
  sinks:
    out: {files: {path: clicks, prefix: clicks-}}
    errors: {kafka: {topic: clicks-errors}}
  quarantine: {share: 0.3}
  local:
    input: {clicks: clicks.jsonl}
"""
EXPECT = """
from collections import Counter
from penstock.jobs.local.recording import Expectation

def expect(recording):
    assert len(recording.records["clicks"]) == 4
    return Expectation(rows=3, quarantined=0, exact=Counter({'{"page": "/", "user": "ann"}': 1, '{"page": "/gone", "user": "zoe"}': 2}))
"""
EXPECTED = EXPECT.replace("rows=3, quarantined=0", "rows=2, quarantined=1").replace(
    """'{"page": "/gone", "user": "zoe"}': 2""", """'{"page": "/cart", "user": "bob"}': 1"""
)
# Views by windows of processing time: how many windows there are is up to the clock.
VISITS_APP = """
from penstock import Job, aggregate, tumbling

def build(job: Job) -> None:
    visits = job.source("visits", "user STRING NOT NULL, page STRING")
    job.write(aggregate(visits, tumbling("5s"), keys=["user"], views="count(*)").select(user="user", views="views"), "out")
    job.side_output("errors")
"""
VISITS_EXPECT = """
from penstock.jobs.local.recording import Expectation

def expect(recording):
    views = lambda rows: {"views": sum(row["views"] for row in rows)}
    return Expectation(rows=3, quarantined=1, measures={"views": 3}, measure=views)
"""
VISITS = (
    SPEC.replace("clicks", "visits")
    .replace("time: {field: at, outOfOrderness: 10s}", "time: {kind: processing}")
    .replace("path: visits", "path: visits, bucket: team-lake")
    .replace("input: {visits: visits.jsonl}", "input: {visits: clicks.jsonl}\n    expect: visits_expect:expect")
)
LINES = """\
{"user": "ann", "at": "2025-04-05T12:00:00Z", "page": "/"}
{"user": "bob", "at": "2025-04-05T12:00:01Z", "page": "/cart"}
{"user": "monitor", "at": "2025-04-05T12:00:02Z", "page": "/health"}
not JSON
"""

# A function of the team's that only Python workers call: each executor imports it.
PAGES = """
def short(page):
    # Rows of side outputs pass through as well, without data.
    return page and (page.rstrip("/") or "/")
"""
APP_WITH_PYTHON = APP.replace('page="page"', 'page=udf(pages.short)("page")').replace(
    "from penstock.jobs.job import Job", "import pages\nfrom penstock.jobs.job import Job\nfrom pyspark.sql.functions import udf"
)


def written(folder: Path) -> Path:
    """Writes the job into a folder; its spec."""
    folder.mkdir()
    (folder / "clicks_app.py").write_text(APP, encoding="utf-8")
    (folder / "clicks.jsonl").write_text(LINES, encoding="utf-8")
    (folder / "clicks.yaml").write_text(SPEC, encoding="utf-8")
    return folder / "clicks.yaml"


def up(spec: Path, temporary: Path, *options: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(temporary)}
    command = [sys.executable, "-m", "penstock.scripts", "up", str(spec), *options]
    return subprocess.Popen(command, env=environment, cwd=spec.parent, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def processes(temporary: Path) -> list[str]:
    """Command lines of the processes that have to do with a folder: each of `up`'s children names it."""
    processes = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            environment = (folder / "environ").read_bytes()
        except OSError:
            continue
        if int(folder.name) != os.getpid() and str(temporary).encode() in environment:
            processes.append(line)
    return processes


def wait_until_gone(temporary: Path) -> None:
    until_s = time.monotonic() + 60
    while processes(temporary):
        assert time.monotonic() < until_s, f"left behind: {processes(temporary)}"


def until(up: subprocess.Popen[str], pattern: str) -> str:
    assert up.stderr is not None
    result = []
    for line in up.stderr:
        result.append(line)
        if re.search(pattern, line):
            return line
    raise AssertionError("".join(result))
