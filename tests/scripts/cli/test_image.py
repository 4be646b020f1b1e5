"""`penstock image`: what it refuses before it builds."""

from __future__ import annotations

import os
from pathlib import Path

from tests.scripts.cli.called import penstock


def test_a_build_without_an_app_is_refused() -> None:
    ran = penstock("image", "build", "--tag", "team/jobs:1", environment=os.environ)
    assert ran.returncode == 2
    assert "error[USE-001]" in ran.stderr and "no app" in ran.stderr


def test_a_name_that_no_registry_takes_is_refused(tmp_path: Path) -> None:
    ran = penstock("image", "build", "--app", str(tmp_path), "--tag", "Team/jobs", environment=os.environ)
    assert ran.returncode == 2
    assert "error[IMG-006]" in ran.stderr


def test_a_folder_without_an_app_is_refused_before_anything_is_built(tmp_path: Path) -> None:
    environment = {**os.environ, "PENSTOCK_CACHE": str(tmp_path / "cache"), "PATH": ""}
    ran = penstock("image", "build", "--app", str(tmp_path), "--tag", "team/jobs:1", environment=environment)
    assert ran.returncode == 2
    assert "error[IMG-004]" in ran.stderr
