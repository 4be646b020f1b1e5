"""``penstock check`` as a process: what its user sees, and how it ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.scripts.layout import ROOT
from tests.infra.environments import written
from tests.scripts.cli.called import penstock

SPEC = """\
apiVersion: penstock/v1
kind: StreamingJob
metadata: {name: clicks}
spec:
  app: clicks
  parallelism: 1
  executor: {slots: 1, memory: 2g}
  sources: {clicks: {kafka: {topic: clicks}}}
  sinks: {out: {files: {path: clicks, bucketBy: none}}, errors: {kafka: {topic: errors}}}
"""
APP = """\
print("imported")
def build(job):
    clicks = job.source("clicks", "user STRING NOT NULL, page STRING")
    job.write(clicks.select(user="usr"), "out")
    job.side_output("errors")
"""


def test_an_invalid_spec_and_an_app_that_is_no_python_are_found_without_spark(tmp_path: Path) -> None:
    (tmp_path / "broken.yaml").write_text(SPEC.replace("parallelism: 1", "paralelism: 1"), encoding="utf-8")
    (tmp_path / "clicks.yaml").write_text(SPEC, encoding="utf-8")
    (tmp_path / "clicks.py").write_text("def build(job:\n", encoding="utf-8")
    called = penstock("check", "broken.yaml", "clicks.yaml", cwd=tmp_path)
    assert called.returncode == 2
    assert "error[SPEC-004]: unknown field\n  at   broken.yaml:6" in called.stderr
    assert "error[SPEC-012]: cannot parse the app's module\n  at   clicks.py:1" in called.stderr
    assert "Spark" not in called.stderr


def test_a_spec_is_required() -> None:
    called = penstock("check")
    assert (called.returncode, "SPEC" in called.stderr) == (2, True)


@pytest.mark.spark
def test_each_spec_is_checked_by_itself_and_the_errors_are_those_of_all(tmp_path: Path) -> None:
    (tmp_path / "clicks.yaml").write_text(SPEC, encoding="utf-8")
    (tmp_path / "clicks.py").write_text(APP, encoding="utf-8")
    (tmp_path / "broken.yaml").write_text(SPEC.replace("parallelism: 1", "paralelism: 1"), encoding="utf-8")
    shipped = str(ROOT / "jobs/specs/user_credit.yaml")
    words = [sys.executable, "-m", "penstock.scripts", "check", shipped, "clicks.yaml", "broken.yaml", "-o", "json"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PENSTOCK_CHECK": "on"}
    ended = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    # Standard output has nothing but the document, whatever the app and Spark print.
    document = json.loads(ended.stdout)
    assert [one["passed"] for one in document["specs"]] == [True, False, False], ended.stderr
    (of_app, *of_spec) = document["errors"]
    assert (of_app["code"], of_app["file"], of_app["line"]) == ("JOB-003", str(tmp_path / "clicks.py"), 4)
    assert of_app["fix"] == "did you mean user?"
    assert of_spec[0]["code"] == "SPEC-004"
    # An invalid document outweighs a failed check.
    assert ended.returncode == 2
    assert "Exception" not in ended.stderr


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """A spec, with an app that names a column that does not exist."""
    (tmp_path / "clicks.yaml").write_text(SPEC, encoding="utf-8")
    (tmp_path / "clicks.py").write_text(APP, encoding="utf-8")
    return tmp_path / "clicks.yaml"


@pytest.mark.spark
def test_size_checks_the_app_first_unless_told_otherwise(broken: Path) -> None:
    def size(*words: str, java: str = "") -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PENSTOCK_CHECK": "on", **({"JAVA_HOME": java} if java else {})}
        words = (sys.executable, "-m", "penstock.scripts", "size", str(broken), *words)
        return subprocess.run(words, env=environment, capture_output=True, text=True, check=False)

    failed = size()
    assert (failed.returncode, failed.stdout) == (1, "")
    assert f"error[JOB-003]: app failed before the query started\n  at   {broken.parent}/clicks.py:4" in failed.stderr
    unchecked = size("--no-check")
    assert (unchecked.returncode, unchecked.stderr) == (0, "")
    # A machine on which Spark does not start can still plan.
    without = size(java=str(broken.parent))
    assert (without.returncode, without.stdout) == (0, unchecked.stdout)
    assert "not done, see penstock check: Spark does not start on this machine" in without.stderr


def test_a_parallelism_of_the_environment_that_the_spec_can_not_have_is_found_without_spark(tmp_path: Path) -> None:
    load = "load: {eventsPerSecond: 10, eventBytes: 100, eventsPerSlot: 100}"
    text = SPEC.replace("parallelism: 1", load).replace(", memory: 2g", "")
    (tmp_path / "clicks.yaml").write_text(text, encoding="utf-8")
    (tmp_path / "clicks.py").write_text(APP, encoding="utf-8")
    written(tmp_path, lambda spec: spec.update(jobs=[{"spec": "clicks.yaml", "parallelism": 4}]))
    for words in (("check", "clicks.yaml"), ("size", "clicks.yaml"), ("lint", "clicks.yaml")):
        called = penstock(*words, "--environment", "environment.yaml", cwd=tmp_path)
        assert called.returncode == 2
        assert "error[SPEC-014]: parallelism can't be overridden\n  at   environment.yaml:" in called.stderr
