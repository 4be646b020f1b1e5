"""`penstock packages`: what it says of the locks of apps, and what it writes for the build of the image."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.infra.app_packages import PACKAGES
from penstock.scripts.installation.image_packages import BUILD
from penstock.scripts.layout import ROOT
from tests.app_locks import jar, lock_of, sha256, spec, wheel
from tests.infra.dockerfile import stages
from tests.scripts.cli.called import Called, penstock

HASH = f"sha256:{'1' * 64}"


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """A spec with a wheel and a jar beside it, and a package of every job in its lock."""
    built = wheel(tmp_path / "wheels", {"a_teams_pages.py": "NAME = 'pages'"})
    jars = f"our-functions.jar --hash=sha256:{sha256(jar(tmp_path))}\n"
    return spec(tmp_path, python=f"{lock_of(built)}pyspark==4.3.0 --hash={HASH}\n", jars=jars)


def called(*words: object, cache: Path) -> Called:
    return penstock("packages", *map(str, words), environment={**os.environ, "PENSTOCK_CACHE": str(cache)})


def test_it_says_what_an_app_has_beside_what_every_job_has(job: Path, tmp_path: Path) -> None:
    ran = called(job, ROOT / "jobs/specs/flights.yaml", cache=tmp_path / "cache")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout == "clicks: a-teams-pages 1.0, our-functions.jar\nflights: no packages of its own\n"
    assert not (tmp_path / "cache").exists()


def test_the_mistakes_of_all_jobs_are_reported_at_once(job: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    with (tmp_path / "requirements.lock").open("a") as lock:
        lock.write(f"pyarrow==19.0.1 --hash={HASH}\n")
    ran = called(job, spec(other, jars=f"org.apache.kafka:kafka-clients:3.8.0 --hash={HASH}\n"), cache=tmp_path / "cache")
    assert ran.returncode == 2
    assert f"at   {tmp_path}/requirements.lock:6  pyarrow==19.0.1" in ran.stderr
    assert f"at   {other}/jars.lock:1  kafka-clients-3.8.0.jar" in ran.stderr


def test_size_and_up_report_the_same_mistakes_before_they_start_anything(job: Path, tmp_path: Path) -> None:
    with (tmp_path / "requirements.lock").open("a") as lock:
        lock.write("geohash2\n")
    for verb in ("size", "up"):
        ran = penstock(verb, str(job), environment=os.environ)
        assert ran.returncode == 2
        assert f"error[SPEC-061]: invalid line in a lock\n  at   {tmp_path}/requirements.lock:6  geohash2" in ran.stderr


def test_without_a_job_it_says_what_it_needs(tmp_path: Path) -> None:
    ran = called(cache=tmp_path / "cache")
    assert ran.returncode == 2
    assert "need a SPEC, --environment ENV or --constraints" in ran.stderr


def test_constraints_are_those_of_the_images_lock(tmp_path: Path) -> None:
    ran = called("--constraints", cache=tmp_path / "cache")
    assert "pyspark==4.3.0\n" in ran.stdout and re.search(r"^pyarrow==[0-9.]+$", ran.stdout, re.MULTILINE)


def test_the_jobs_of_an_environment_are_prepared_for_the_image(tmp_path: Path) -> None:
    out = tmp_path / "dist/packages"
    (out / "0123456789abcdef").mkdir(parents=True)
    ran = called("--environment", "production", "--out", out, cache=tmp_path / "cache")
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.endswith(f"{out}: no locks\n")
    assert list(out.iterdir()) == [], "what an earlier build had is gone"


def test_what_it_writes_is_what_the_images_build_installs(job: Path, tmp_path: Path) -> None:
    """The build's own commands, with folders of the test in the place of the image's."""
    out, image = tmp_path / "dist/packages", tmp_path / "image"
    ran = called(job, "--out", out, cache=tmp_path / "cache")
    assert ran.returncode == 0, ran.stderr
    python, jars = sorted(out.iterdir(), key=lambda folder: not (folder / "requirements.lock").exists())
    assert ran.stdout.endswith(f"{out}: {', '.join(sorted(folder.name for folder in (python, jars)))}\n")
    (stage,) = [stage for stage in stages(ROOT / "infra/image/Dockerfile") if stage.name == "python"]
    (command,) = [text for text in stage.of("RUN") if PACKAGES in text]
    lock = python / "requirements.lock"
    lock.write_text(lock.read_text("utf-8").replace(BUILD, str(out)), encoding="utf-8")
    for ours, theirs in ((str(out), BUILD), (str(image), PACKAGES), (sys.executable, "/opt/venv/bin/python")):
        command = command.replace(theirs, ours)
    script = re.sub(r"^(--mount=\S+ )+", "", command)
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", "UV_NO_INDEX": "1"}
    built = subprocess.run(["bash", "-c", script], env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert built.returncode == 0, built.stderr
    assert (image / python.name / "python/a_teams_pages.py").is_file()
    assert not (image / python.name / "python/pyspark").exists()
    assert (image / jars.name / "jars/our-functions.jar").read_bytes() == (tmp_path / "our-functions.jar").read_bytes()
    (jars / "jars/our-functions.jar").write_bytes(b"changed")
    assert subprocess.run(["bash", "-c", script], env=environment, capture_output=True, timeout=300, check=False).returncode != 0
