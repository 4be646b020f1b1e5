"""A repository that ``penstock init`` has made, after a second job has been added as its README tells, and what its image is built from."""

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
    """With a second job."""
    made = own_repository.create(tmp_path_factory.mktemp("team"), wheel)
    (made.folder / "page_stats/checks.py").write_text(SECOND_APP)
    spec = yaml.safe_load((made.folder / "specs/page_views.yaml").read_text())
    spec["metadata"]["name"] = "checks"
    spec["spec"] = {**spec["spec"], "app": "page_stats.checks", "local": {"input": {"page-views": "page_views.jsonl"}}}
    spec["spec"]["sinks"] = {"out": {"files": {"path": "checks"}}, "errors": {"kafka": {"topic": "checks-errors"}}}
    (made.folder / "specs/checks.yaml").write_text(yaml.safe_dump(spec))
    for name in ("local", "dev", "production"):
        file = made.folder / f"environments/{name}.yaml"
        text = file.read_text()
        assert _FIRST in text
        file.write_text(text.replace(_FIRST, _FIRST + _SECOND))
    return made


def test_both_jobs_run(team: Team) -> None:
    assert "passed" in team.succeeds("penstock", "check", "specs/checks.yaml")
    said = team.succeeds("penstock", "up")
    assert "verdict     correct" in said
    assert "s3a://page-stats-local-output/checks/" in said


def test_its_tests_pass(team: Team) -> None:
    assert "passed" in team.succeeds("python", "-m", "pytest", "-p", "no:cacheprovider")


def test_its_stacks_are_synthesized_with_penstock_and_with_cdktf(team: Team) -> None:
    team.succeeds("penstock", "synth", "dev")
    assert "jobs-charts" in team.cdktf("list", environment="dev")
    team.cdktf("synth", environment="production")


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
