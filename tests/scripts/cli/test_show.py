"""``penstock show`` as a process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.scripts.layout import ROOT
from tests.scripts.cli.called import penstock


def test_an_invalid_spec_is_reported_without_spark(tmp_path: Path) -> None:
    (tmp_path / "broken.yaml").write_text("kind: StreamingJob\n", encoding="utf-8")
    called = penstock("show", "broken.yaml", cwd=tmp_path)
    assert (called.returncode, called.stdout) == (2, "")
    assert called.stderr.startswith("error[SPEC-")


@pytest.mark.spark
def test_the_queries_of_a_job_are_one_document_on_standard_output(tmp_path: Path) -> None:
    # A process of its own: its JVM ends with the session that it analyzes in.
    words = [sys.executable, "-m", "penstock.scripts", "show", str(ROOT / "jobs/specs/page_counts.yaml"), "-o", "json"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    document = json.loads(ended.stdout)
    assert document["job"] == "page-counts"
    (query,) = document["queries"]
    assert ("Aggregate", None) in [(one["name"], one["feeds"]) for one in query["operators"]]
    assert {"errors"} <= {one["name"] for one in query["sideOutputs"]}
    assert list(tmp_path.iterdir()) == []
