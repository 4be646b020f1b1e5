"""A team's folder with an environment of their own, and `penstock emulate` of it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from penstock.scripts.layout import ROOT

# All of a start and an apply on a busy machine with two cores.
LIMIT_S = 400
ENVIRONMENT = """\
apiVersion: penstock/v1
kind: Environment
metadata: {name: team}
spec:
  account: "123456789012"
  region: us-east-1
  protect: true
  buckets: {checkpoints: team-checkpoints, output: team-output}
"""


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    """A team's folder, with their environment."""
    if shutil.which("terraform") is None or shutil.which("node") is None:
        pytest.skip("terraform and node are not in PATH")
    folder = tmp_path / "a team's desk"
    folder.mkdir()
    (folder / "team.yaml").write_text(ENVIRONMENT, encoding="utf-8")
    return folder


@pytest.fixture
def bare(tmp_path: Path) -> dict[str, str]:
    """Variables without credentials, and without the address that a machine on AWS has them from."""
    (tmp_path / "tmp").mkdir()
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    nothing = {"AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull, "AWS_EC2_METADATA_DISABLED": "true"}
    return {**kept, **nothing, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path / "tmp")}


@contextmanager
def emulate(desk: Path, variables: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """The command while it runs; it does not outlive a test that fails."""
    command = [sys.executable, "-m", "penstock.scripts", "emulate", "team.yaml"]
    with subprocess.Popen(command, cwd=desk, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        try:
            yield running
        finally:
            running.kill()


def left(desk: Path) -> list[str]:
    """What is in the folder that it uses."""
    return sorted(path.name for path in (desk / ".penstock/emulated/team").iterdir())
