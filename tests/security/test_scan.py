"""The gate on the shipped stacks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.scripts.cli.command import main
from penstock.scripts.installation.cache import VARIABLE, Cache
from penstock.scripts.installation.tool_environment import ToolEnvironment

pytestmark = [pytest.mark.emulated, pytest.mark.timeout(1200)]


def test_a_shipped_environment_passes_the_gate_and_is_not_scanned_again(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # A cache without scans; the scanner itself is the user's, installed where it will be used: its programs have the path in them.
    ToolEnvironment("checkov").ensure(lambda said: None)
    (tmp_path / "checkov").symlink_to(Cache.of_user().folder / "checkov")
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    document = _scanned(capsys)
    assert document["waived"]
    assert document["unchanged"] == []
    assert set(document["scanned"]) >= {"network", "checkpoints", "kafka", "cluster", "karpenter", "registry", "jobs", "observability"}
    assert {"karpenter-charts", "jobs-charts", "observability-charts", "Dockerfile"} <= set(document["scanned"])
    again = _scanned(capsys)
    assert again["unchanged"] == list(document["scanned"])
    assert again["waived"] == document["waived"]


def _scanned(capsys: pytest.CaptureFixture[str]) -> dict[str, list[object]]:
    code = main(["scan", "production", "-o", "json"])
    said = capsys.readouterr()
    assert code == 0, said.out
    document: dict[str, list[object]] = json.loads(said.out)
    return document
