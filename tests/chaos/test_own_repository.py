"""A repository that ``penstock init`` has made: its local run, what its image is built from, and all of it once more after a second job has
been added as its README tells.
"""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml

from tests import built_wheel, own_repository
from tests.own_repository import Team

pytestmark = pytest.mark.timeout(1_800)

SECOND_APP = """\
from penstock import Job


def build(job: Job) -> None:
    views = job.source("views", "user STRING NOT NULL, at STRING, page STRING")
    job.write(views.filter("page = '/health'").select(user="user"), "out")
    job.side_output("errors")
"""
_FIRST, _SECOND = "    - ../specs/page_views.yaml\n", "    - ../specs/checks.yaml\n"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_wheel.build(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def team(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Team:
    return own_repository.create(tmp_path_factory.mktemp("team"), wheel)


@pytest.fixture(scope="module")
def edited(team: Team) -> Team:
    """With a second job."""
    (team.folder / "page_stats/checks.py").write_text(SECOND_APP)
    spec = yaml.safe_load((team.folder / "specs/page_views.yaml").read_text())
    spec["metadata"]["name"] = "checks"
    # A topic of its own: two jobs that run together have one input for each.
    spec["spec"] = {**spec["spec"], "app": "page_stats.checks", "local": {"input": {"probes": "page_views.jsonl"}}}
    spec["spec"]["sources"]["views"]["kafka"]["topic"] = "probes"
    spec["spec"]["sinks"] = {"out": {"files": {"path": "checks"}}, "errors": {"kafka": {"topic": "checks-errors"}}}
    (team.folder / "specs/checks.yaml").write_text(yaml.safe_dump(spec))
    for name in ("local", "dev", "production"):
        file = team.folder / f"environments/{name}.yaml"
        text = file.read_text()
        assert _FIRST in text
        file.write_text(text.replace(_FIRST, _FIRST + _SECOND))
    return team


def test_its_job_runs_to_the_rows_that_it_expects(team: Team) -> None:
    assert "verdict     correct" in team.succeeds("penstock", "up")


def test_both_jobs_run(edited: Team) -> None:
    assert "passed" in edited.succeeds("penstock", "check", "specs/checks.yaml")
    said = edited.succeeds("penstock", "up")
    assert "verdict     correct" in said
    assert "s3a://page-stats-local-output/checks/" in said


def test_its_tests_pass_after_the_edit(edited: Team) -> None:
    assert "7 passed" in edited.succeeds("python", "-m", "pytest", "-p", "no:cacheprovider")


def test_its_stacks_are_synthesized_with_penstock_and_with_cdktf(edited: Team) -> None:
    edited.succeeds("penstock", "synth", "dev")
    assert "jobs-charts" in edited.cdktf("list", environment="dev")
    edited.cdktf("synth", environment="production")


def test_the_image_of_its_jobs_is_built_from_the_wheel_that_is_installed(team: Team, wheel: Path, tmp_path: Path) -> None:
    out = team.folder / ".penstock/image"
    team.succeeds("penstock", "image", "context", "--environment", "dev", "--out", str(out))
    assert (out / "infra/image/Dockerfile").is_file()
    (made,) = (out / "dist").glob("penstock_kit-*.whl")
    assert _contents(made) == _contents(wheel)
    again = tmp_path / "again"
    options = ["--quiet", "--no-deps", "--no-index", "--no-compile", "--target", str(again), str(made)]
    subprocess.run([sys.executable, "-m", "pip", "install", *options], check=True, timeout=120)
    assert (again / "penstock/scripts/repository/template/Dockerfile.template").is_file()


def _contents(wheel: Path) -> dict[str, int]:
    """Name -> checksum of the files, without their list."""
    with zipfile.ZipFile(wheel) as archive:
        return {one.filename: one.CRC for one in archive.infolist() if not one.filename.endswith("/RECORD") and not one.is_dir()}
