"""Paths of what the set-up installs, and the errors before it has run."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.scripts import layout
from penstock.scripts.errors import CacheOfAnotherVersion, NotSetUp
from penstock.scripts.installation import setting_up
from penstock.scripts.installation.cache import Cache
from penstock.scripts.installation.jvm_classes import JvmClasses


def test_jars_are_found_in_the_order_of_their_names(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    spark, kafka = setting_up.spark_jars().folder(cache), setting_up.kafka_jars().folder(cache)
    own = JvmClasses().folder(cache)
    for jar in (spark / "b.jar", spark / "a.jar", own / "own.jar", kafka / "d.jar", kafka / "c.jar", kafka / "notes.txt"):
        jar.parent.mkdir(parents=True, exist_ok=True)
        jar.touch()
    assert layout.spark_jars(cache) == [spark / "a.jar", spark / "b.jar", own / "own.jar"]
    assert layout.kafka_classpath(cache) == f"{kafka}/c.jar{os.pathsep}{kafka}/d.jar"


@pytest.mark.parametrize("find", [layout.spark_jars, layout.kafka_classpath, layout.cdktf])
def test_a_missing_tool_is_an_error_that_names_the_set_up(tmp_path: Path, find: Callable[[Cache], object]) -> None:
    with pytest.raises(NotSetUp) as raised:
        find(Cache(tmp_path))
    assert raised.value.exit_code == 4
    assert raised.value.fix.startswith("penstock setup")
    assert raised.value.path.startswith(str(tmp_path))


def test_a_cache_of_another_version_is_not_looked_into(tmp_path: Path) -> None:
    (tmp_path / "layout").write_text("2")
    with pytest.raises(CacheOfAnotherVersion):
        layout.spark_jars(Cache(tmp_path))


def test_a_child_process_finds_the_package_of_a_checkout_and_never_what_lies_inside_it(tmp_path: Path) -> None:
    path = layout.python_path(tmp_path).split(os.pathsep)
    assert path[0] == str(tmp_path)
    for folder in map(Path, path):
        assert folder.name != "penstock" or not (folder / "__init__.py").exists()


def test_an_installed_package_is_found_without_its_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(layout, "ROOT", tmp_path / "site-packages")
    assert layout.python_path() == ""
