"""``penstock rehearse`` of all AWS stacks, and one that is interrupted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from penstock.scripts.layout import ROOT
from tests.emulated.clicks import until, wait_until_gone

REHEARSE = [sys.executable, "-m", "penstock.scripts", "rehearse", "local"]
LIMIT_S = 2400


@pytest.fixture
def own(tmp_path: Path) -> dict[str, str]:
    """The environment variables: with moto alone, and temporary files in a folder that shows what is left."""
    (tmp_path / "tmp").mkdir()
    return {**{name: value for name, value in os.environ.items() if name != "LOCALSTACK_ENDPOINT"}, "TMPDIR": str(tmp_path / "tmp")}


@pytest.mark.timeout(LIMIT_S)
def test_an_environment_is_rehearsed_and_leaves_nothing(tmp_path: Path, own: dict[str, str]) -> None:
    junit, out = tmp_path / "reports/rehearsal.xml", tmp_path / "out"
    command = [*REHEARSE, "--junit", str(junit), "--out", str(out), "-o", "json"]
    ran = subprocess.run(command, cwd=ROOT, env=own, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert ran.returncode == 0, ran.stderr
    stages = json.loads(ran.stdout)["stages"]
    assert {stage["stack"] for stage in stages} >= {"checkpoints", "network", "cluster", "kafka", "karpenter", "jobs"}
    assert {stage["outcome"] for stage in stages} == {"passed"}
    created = {stage["stack"]: stage["resources"] for stage in stages if stage["stage"] == "apply"}
    assert created == {stage["stack"]: stage["resources"] for stage in stages if stage["stage"] == "destroy"}
    assert {case.get("name") for case in ElementTree.parse(junit).iter("testcase")} == created.keys()
    assert [one.name for one in out.iterdir()] == ["in-use"]


@pytest.mark.timeout(LIMIT_S)
def test_an_interrupted_rehearsal_says_how_far_it_came_and_leaves_nothing(tmp_path: Path, own: dict[str, str]) -> None:
    junit, out = tmp_path / "rehearsal.xml", tmp_path / "out"
    command = [*REHEARSE, "--junit", str(junit), "--out", str(out)]
    with subprocess.Popen(command, cwd=ROOT, env=own, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        until(running, r"^  network +\d+ created")
        running.send_signal(signal.SIGTERM)
        said, _ = running.communicate(timeout=LIMIT_S)
    assert running.returncode == 130
    assert "left out" in said and "failed" not in said
    stages = {(case.get("classname"), case.get("name")): case.find("skipped") is None for case in ElementTree.parse(junit).iter("testcase")}
    assert stages["apply", "network"] and not stages["destroy", "network"]
    assert [one.name for one in out.iterdir()] == ["in-use"]
    wait_until_gone(tmp_path / "tmp")
