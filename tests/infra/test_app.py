from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from penstock.scripts.layout import ROOT


def _app(folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs the app without Node.js, which is missed after the environment has been read and before cdktf starts."""
    environment = {**os.environ, "PATH": str(folder), "PYTHONPATH": str(ROOT), **variables}
    if "PENSTOCK_ENVIRONMENT" not in variables:
        environment.pop("PENSTOCK_ENVIRONMENT", None)
    command = [sys.executable, "-m", "penstock.infra"]
    return subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, timeout=60, check=False)


def test_there_is_no_default_environment(tmp_path: Path) -> None:
    ran = _app(tmp_path)
    assert ran.returncode == 2
    assert ran.stderr.startswith("error[INF-002]")
    assert "export PENSTOCK_ENVIRONMENT=" in ran.stderr


def test_an_unknown_environment_is_reported(tmp_path: Path) -> None:
    ran = _app(tmp_path, PENSTOCK_ENVIRONMENT="prod")
    assert ran.returncode == 2
    assert ran.stderr.startswith("error[INF-001]")


def test_an_invalid_environment_file_is_reported_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_text("apiVersion: penstock/v2\n")
    ran = _app(tmp_path, PENSTOCK_ENVIRONMENT=str(file))
    assert ran.returncode == 2
    assert "wrong.yaml:1" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_missing_node_is_reported(tmp_path: Path) -> None:
    ran = _app(tmp_path, PENSTOCK_ENVIRONMENT="local")
    assert ran.returncode == 4
    assert ran.stderr.startswith("error[INF-003]")
