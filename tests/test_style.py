"""The house's style, held by its tools: one test a tool, whose words are the failure."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.scripts.layout import ROOT

BIN = Path(sys.executable).parent


@pytest.mark.parametrize(
    "command",
    [("ruff", "check", "."), ("mypy", "--strict", "-p", "penstock", "-p", "tests", "-p", "benchmarks"), ("lint-imports",)],
    ids=["ruff", "mypy", "import-linter"],
)
def test_the_tool_has_nothing_to_say(command: tuple[str, ...]) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1"}
    ran = subprocess.run(
        [BIN / command[0], *command[1:]], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    if ran.returncode != 0:
        pytest.fail(f"{' '.join(command)}\n{ran.stdout}{ran.stderr}", pytrace=False)


@pytest.mark.parametrize("script", ["scripts/setup", "scripts/test", "scripts/quickstart", "scripts/benchmark", ".ci/run"])
def test_a_shell_script_can_be_run_and_parses(script: str) -> None:
    path = ROOT / script
    assert os.access(path, os.X_OK)
    ran = subprocess.run(["bash", "-n", path], capture_output=True, text=True, timeout=30, check=False)
    assert ran.returncode == 0, ran.stderr


def test_the_classes_for_sparks_jvm_stay_small() -> None:
    # Python is the language; docs/decisions/0062-json-reader.md says what the limit has cost.
    sources = sorted((ROOT / "jobs" / "jvm").rglob("*.java"))
    lines = {source.name: len(source.read_text(encoding="utf-8").splitlines()) for source in sources}
    assert len(lines) == len(sources) > 0
    assert sum(lines.values()) <= 800, lines


def test_no_folder_has_the_fixtures_of_another_folders_spark_session() -> None:
    """A process has one Spark session: fixtures that a second folder imports would start an S3 and a broker that it doesn't use."""
    importing = [
        str(file.relative_to(ROOT))
        for file in sorted((ROOT / "tests").rglob("*.py"))
        if file != Path(__file__) and "from tests.jobs.spark.conftest import" in file.read_text(encoding="utf-8")
    ]
    assert importing == []
