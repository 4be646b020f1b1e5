from __future__ import annotations

import os
from pathlib import Path

import pytest

from penstock.jobs.driver import session as spark_session
from penstock.jobs.spec import State
from penstock.scripts.installation.cache import Cache
from penstock.scripts.local import class_data, class_data_training
from penstock.scripts.progress import Steps


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    """One with the jars of this user's, and nothing else."""
    for name in ("layout", "jars-spark", "jvm-classes"):
        (tmp_path / name).symlink_to(Cache.of_user().folder / name)
    return Cache(tmp_path)


def test_without_an_archive_jvms_start_without_options(cache: Cache) -> None:
    assert class_data.options(cache) == ""


def test_an_archive_that_cannot_be_made_is_reported_once(
    cache: Cache, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(class_data, "_TRAINING", "no.module.of.this.name")
    assert not class_data.make(Steps(), cache)
    assert "its JVMs start slower; see " in capsys.readouterr().err
    assert "No module named" in (cache.logs / "class-data.log").read_text(encoding="utf-8")
    assert class_data.options(cache) == ""
    assert not class_data.make(Steps(), cache)
    assert capsys.readouterr().err == ""


def test_another_jvm_gets_another_archive(cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entries = []
    for version in ("17.0.1", "17.0.2"):
        home = tmp_path / "jdk"
        home.mkdir(exist_ok=True)
        (home / "release").write_text(f'JAVA_VERSION="{version}"', encoding="utf-8")
        monkeypatch.setenv("JAVA_HOME", str(home))
        entries.append(class_data.spark(cache).folder)
    assert len(set(entries)) == 2


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of a Spark with one jar, which has no Python to make an archive with."""
    jars = tmp_path / "pyspark" / "jars"
    jars.mkdir(parents=True)
    (jars / "spark-core.jar").write_bytes(b"classes")
    monkeypatch.setattr(class_data, "spark_home", lambda: jars.parent)
    monkeypatch.setattr(class_data, "_TRAINING", "no.module.of.this.name")
    return jars.parent


def test_an_environment_that_is_made_again_gets_another_archive(cache: Cache, home: Path) -> None:
    """Its jars have other times, and a JVM ignores an archive for those, without a word."""
    before = class_data.spark(cache).folder
    of_an_earlier_release = before.with_name(before.name.partition("-")[0])
    of_an_earlier_release.mkdir(parents=True)
    class_data.make(Steps(), cache)
    assert before.is_dir()
    os.utime(home / "jars" / "spark-core.jar", (1, 1))
    after = class_data.spark(cache).folder
    assert after != before
    class_data.make(Steps(), cache)
    # One has 200 MB.
    assert list(before.parent.iterdir()) == [after]


def test_the_session_that_loads_the_classes_has_the_settings_of_jobs() -> None:
    """It imports nothing of Penstock, whose wheel comes later in the image's build."""
    assert class_data_training.JOBS.items() <= {**spark_session.FIXED, **spark_session.state_conf(State())}.items()
