"""The check of the pipelines, step by step as it is written, here and in a team's repository, with LocalStack as its image runs it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from penstock.infra.environment_file import ENVIRONMENT_VARIABLE
from penstock.scripts.emulation.localstack import ENDPOINT_VARIABLE
from penstock.scripts.layout import ROOT
from tests import built_wheel
from tests.chaos.stock_localstack import stock_localstack

# The set-up downloads 700 MB of packages where the caches of pip and npm are empty.
STEP_LIMIT_S = 1_800
pytestmark = pytest.mark.timeout(5_400)

# Of the tests: a runner has none of them.
_OWN = ("PYTHONPATH", "VIRTUAL_ENV", "PENSTOCK_CHECK", "PENSTOCK_REQUIRE_ALL", "PYSPARK_PYTHON", ENVIRONMENT_VARIABLE, ENDPOINT_VARIABLE)


@pytest.fixture(scope="module")
def localstack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with stock_localstack(tmp_path_factory.mktemp("localstack")) as endpoint:
        yield endpoint


def test_the_check_of_a_teams_repository_passes(localstack: str, tmp_path: Path) -> None:
    wheel = built_wheel.build(tmp_path / "wheel")
    folder = tmp_path / "page-stats"
    # As the package of an index would be installed.
    subprocess.run([sys.executable, "-m", "penstock.scripts", "init", str(folder), "--yes"], check=True, timeout=60, env=_with_penstock())
    _commit(folder, "init")
    spec = folder / "specs/page_views.yaml"
    spec.write_text(spec.read_text("utf-8") + "# changed\n")
    _commit(folder, "change")
    done = _run(folder, folder / ".github/workflows/penstock.yaml", localstack, PIP_FIND_LINKS=str(wheel.parent))
    assert "7 passed" in done["test"]
    assert "1 passed" in done["stacks"]


def test_the_check_of_this_repository_passes(localstack: str, tmp_path: Path) -> None:
    folder = tmp_path / "penstock"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(folder)], check=True, timeout=120)
    # Its own tests are what runs this one.
    done = _run(folder, folder / "infra/pipeline" / "github-actions.yaml", localstack, without=("test",))
    assert "0 failed, 0 skipped" in done["stacks"]


def _run(folder: Path, workflow: Path, localstack: str, *, without: tuple[str, ...] = (), **more: str) -> dict[str, str]:
    """Runs the steps as GitHub does: each by itself with bash, until one fails; step -> output."""
    check: dict[str, Any] = yaml.safe_load(workflow.read_text("utf-8"))["jobs"]["check"]
    inherited = {name: value for name, value in os.environ.items() if name not in _OWN}
    # What GitHub fills in.
    values = {"PENSTOCK_BASE": "HEAD^1", ENDPOINT_VARIABLE: localstack}
    environment = {**inherited, **check["env"], **values, **more}
    done: dict[str, str] = {}
    for step in check["steps"]:
        if "id" not in step or step["id"] in without:
            continue
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=STEP_LIMIT_S, check=False)
        done[step["id"]] = ran.stdout + ran.stderr
        assert ran.returncode == 0, f"{step['id']}:\n{done[step['id']][-8000:]}"
    return done


def _with_penstock() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def _commit(folder: Path, message: str) -> None:
    who = {f"GIT_{who}_{what}": "a@example.com" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    git = shutil.which("git")
    assert git is not None
    for words in (["init", "-q"], ["add", "--all"], ["commit", "-q", "-m", message]):
        subprocess.run([git, *words], cwd=folder, check=True, timeout=60, env={**os.environ, **who})
