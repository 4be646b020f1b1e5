"""An app's own packages in the user's cache: installed by the real uv and pip, and fetched by the real Maven, all without a network."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from penstock.infra.app_packages import AppPackages, app_packages
from penstock.jobs.spec import load
from penstock.scripts.installation.app_packages import COPY, InstalledPackages, checked, install
from penstock.scripts.installation.cache import Cache
from penstock.scripts.progress import Steps
from penstock.sizing.errors import PenstockError
from tests.app_locks import jar, lock_of, sha256, spec, wheel


@pytest.fixture
def steps() -> Steps:
    return Steps(Console(file=io.StringIO()))


def packages(folder: Path, python: str | None = None, jars: str | None = None) -> AppPackages:
    return app_packages(load(spec(folder, python=python, jars=jars)))


def fails(own: AppPackages, folder: Path, steps: Steps) -> PenstockError:
    with pytest.raises(PenstockError) as raised:
        install(own, steps, Cache(folder / "cache"))
    assert not list((folder / "cache").glob("app-*"))
    return raised.value


def test_nothing_is_installed_for_an_app_without_packages(tmp_path: Path, steps: Steps) -> None:
    assert install(packages(tmp_path), steps, Cache(tmp_path / "cache")) == InstalledPackages()
    assert not (tmp_path / "cache").exists()


def test_a_locked_wheel_is_installed_once_and_can_be_imported(tmp_path: Path, steps: Steps) -> None:
    built = wheel(tmp_path / "wheels", {"a_teams_pages.py": "NAME = 'pages'"})
    # What every job has is left to it.
    own = packages(tmp_path, f"{lock_of(built)}pyspark==4.3.0 --hash=sha256:{'1' * 64}\n")
    installed = install(own, steps, Cache(tmp_path / "cache"))
    assert installed.python is not None and installed.path == (installed.python,)
    assert not (installed.python / "pyspark").exists()
    program = "import a_teams_pages; print(a_teams_pages.NAME)"
    variables = {**os.environ, "PYTHONPATH": str(installed.python)}
    ran = subprocess.run([sys.executable, "-c", program], env=variables, capture_output=True, text=True, timeout=60, check=True)
    assert ran.stdout == "pages\n"
    shutil.rmtree(tmp_path / "wheels")
    assert install(own, steps, Cache(tmp_path / "cache")) == installed


def test_a_wheel_for_another_platform_is_an_error_with_the_line_of_the_lock(tmp_path: Path, steps: Steps) -> None:
    fits = wheel(tmp_path / "wheels", {}, name="fits")
    built = wheel(tmp_path / "wheels", {}, tag="cp311-cp311-win_amd64")
    own = packages(tmp_path, f"fits==1.0 --hash=sha256:{sha256(fits)}\n{lock_of(built)}")
    error = fails(own, tmp_path, steps)
    assert (error.code, str(error.at)) == ("TOOL-040", f"{tmp_path / 'requirements.lock'}:3")
    assert error.given.startswith("a-teams-pages==1.0; the end of ")
    assert "win_amd64" in error.given
    assert error.need.startswith(f"a wheel with a hash of the lock for Python {sys.version_info.major}.{sys.version_info.minor} on ")


def test_a_package_with_a_module_of_the_jobs_under_another_name_is_refused(tmp_path: Path, steps: Steps) -> None:
    built = wheel(tmp_path / "wheels", {"pyspark/__init__.py": ""}, name="pyspark_client")
    error = fails(packages(tmp_path, lock_of(built, "pyspark-client")), tmp_path, steps)
    assert (error.code, str(error.at)) == ("SPEC-062", f"{tmp_path / 'requirements.lock'}:2")
    assert error.need.endswith("this one has pyspark")


def test_a_jar_beside_the_lock_is_put_into_the_cache(tmp_path: Path, steps: Steps) -> None:
    own = packages(tmp_path, jars=f"our-functions.jar --hash=sha256:{sha256(jar(tmp_path))}\n")
    (installed,) = install(own, steps, Cache(tmp_path / "cache")).jars
    assert installed.read_bytes() == (tmp_path / "our-functions.jar").read_bytes()
    installed.write_bytes(b"damaged")
    (again,) = install(own, steps, Cache(tmp_path / "cache")).jars
    assert again.read_bytes() == (tmp_path / "our-functions.jar").read_bytes()


def test_jars_that_penstock_and_spark_have_are_refused(tmp_path: Path) -> None:
    rows = [f"{given} --hash=sha256:{'1' * 64}\n" for given in ("org.apache.kafka:kafka-clients:3.8.0", "net.sf.py4j:py4j:0.1")]
    with pytest.raises(PenstockError) as raised:
        checked(load(spec(tmp_path, jars="".join(rows))))
    first, second = raised.value.errors
    assert (first.code, str(first.at)) == ("SPEC-062", f"{tmp_path / 'jars.lock'}:1")
    assert "every job has kafka-clients-" in first.need and "every job has py4j-" in second.need


@pytest.fixture
def offline(tmp_path: Path) -> Path:
    """A folder below which Maven has one repository, with the jars ``of-a-team`` and ``of-another-team``, and what it has downloaded."""
    known = Path.home() / ".m2/repository"
    group, artifact, version, _ = COPY.split(":")
    plugin = known.joinpath(*group.split("."), artifact, version)
    if not plugin.is_dir():
        # The set-up has downloaded it, unless it has found Spark's jars in the user's cache.
        empty = "<groupId>a</groupId><artifactId>b</artifactId><version>1</version><packaging>pom</packaging>"
        (tmp_path / "pom.xml").write_text(f"<project><modelVersion>4.0.0</modelVersion>{empty}</project>", encoding="utf-8")
        subprocess.run(["mvn", "-B", "-q", "-f", str(tmp_path / "pom.xml"), COPY], check=True)
    if not plugin.is_dir():
        pytest.skip(f"Maven's local repository is not {known}")
    # What it installs goes beside the links.
    local, repository = tmp_path / "m2", tmp_path / "repository"
    (local / "org").mkdir(parents=True)
    for entry in [*known.glob("*"), *known.glob("org/*")]:
        if entry.name != "org":
            (local / entry.relative_to(known)).symlink_to(entry)
    for name in ("of-a-team", "of-another-team"):
        folder = repository / f"org/example/{name}/1.0"
        folder.mkdir(parents=True)
        shutil.copy(jar(tmp_path, name), folder / f"{name}-1.0.jar")
        own = f"<groupId>org.example</groupId><artifactId>{name}</artifactId><version>1.0</version>"
        (folder / f"{name}-1.0.pom").write_text(f"<project><modelVersion>4.0.0</modelVersion>{own}</project>", encoding="utf-8")
    mirror = f"<mirror><id>tests</id><mirrorOf>*</mirrorOf><url>{repository.as_uri()}</url></mirror>"
    (tmp_path / "settings.xml").write_text(f"<settings><mirrors>{mirror}</mirrors></settings>", encoding="utf-8")
    words = ["-s", str(tmp_path / "settings.xml"), f"-Dmaven.repo.local={local}", "-llr", "-o", "-Daether.offline.protocols=file"]
    # Source: Maven's "Configuring Apache Maven", the folder .mvn: it holds for all POMs below.
    (tmp_path / ".mvn").mkdir()
    (tmp_path / ".mvn/maven.config").write_text("\n".join(words), encoding="utf-8")
    return tmp_path


def test_maven_gets_jars_by_their_coordinates_and_another_checksum_is_an_error_with_its_line(offline: Path, steps: Steps) -> None:
    first, second = sha256(jar(offline, "of-a-team")), sha256(jar(offline, "of-another-team"))
    rows = [f"org.example:of-a-team:1.0 --hash=sha256:{first}\n", f"org.example:of-another-team:1.0 --hash=sha256:{'1' * 64}\n"]
    error = fails(packages(offline, jars="".join(rows)), offline, steps)
    assert (error.code, str(error.at)) == ("TOOL-041", f"{offline / 'jars.lock'}:2")
    assert (error.given, error.need) == (f"org.example:of-another-team:1.0 with sha256:{second}", f"sha256:{'1' * 64}")


def test_coordinates_that_maven_cannot_resolve_are_an_error_with_their_line(offline: Path, steps: Steps) -> None:
    rows = [f"org.example:{name}:1.0 --hash=sha256:{'1' * 64}\n" for name in ("of-a-team", "of-nobody")]
    error = fails(packages(offline, jars="".join(rows)), offline, steps)
    assert (error.code, str(error.at)) == ("TOOL-041", f"{offline / 'jars.lock'}:2")
    assert error.given.startswith("org.example:of-nobody:1.0; the end of ")
    assert (error.need, "settings.xml" in error.fix) == ("coordinates that Maven resolves", True)
