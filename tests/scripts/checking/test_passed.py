"""Checks that have passed are remembered until something changes that they depend on."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.scripts.checking import passed
from penstock.scripts.checking.checks import Asked, unknown
from penstock.scripts.installation.cache import Cache


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    spec, app = tmp_path / "clicks.yaml", tmp_path / "clicks.py"
    for file in (spec, app):
        file.write_text("as it was\n", encoding="utf-8")
    return spec, app


def test_a_check_is_known_once_it_has_passed(files: tuple[Path, Path], tmp_path: Path) -> None:
    cache, (spec, app) = Cache(tmp_path / "cache"), files
    assert not passed.is_known(spec, (), cache)
    passed.remember(spec, (), (spec, app), cache)
    assert passed.is_known(spec, (), cache)


@pytest.mark.parametrize("changed", [0, 1])
def test_a_changed_or_a_missing_file_is_checked_again(files: tuple[Path, Path], tmp_path: Path, changed: int) -> None:
    cache, (spec, _) = Cache(tmp_path / "cache"), files
    passed.remember(spec, (), files, cache)
    files[changed].write_text("changed\n", encoding="utf-8")
    assert not passed.is_known(spec, (), cache)
    passed.remember(spec, (), files, cache)
    assert passed.is_known(spec, (), cache)
    files[changed].unlink()
    assert not passed.is_known(spec, (), cache)


def test_another_app_path_is_another_check(files: tuple[Path, Path], tmp_path: Path) -> None:
    cache, (spec, app) = Cache(tmp_path / "cache"), files
    passed.remember(spec, (tmp_path,), (spec, app), cache)
    assert not passed.is_known(spec, (), cache)
    assert passed.is_known(spec, (tmp_path,), cache)


def test_a_broken_entry_counts_as_none_and_a_cache_that_cannot_be_written_to_remembers_nothing(
    files: tuple[Path, Path], tmp_path: Path
) -> None:
    cache, (spec, app) = Cache(tmp_path / "cache"), files
    passed.remember(spec, (), (spec, app), cache)
    (entry,) = (tmp_path / "cache").rglob("*.json")
    entry.write_text("[", encoding="utf-8")
    assert not passed.is_known(spec, (), cache)
    blocked = Cache(app / "below-a-file")
    passed.remember(spec, (), (spec, app), blocked)
    assert not passed.is_known(spec, (), blocked)


@pytest.mark.parametrize("variables", [{"PENSTOCK_CHECK": "off"}, {"PATH": "", "JAVA_HOME": ""}])
def test_nothing_is_checked_first_if_it_is_turned_off_or_there_is_no_java(
    files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]
) -> None:
    monkeypatch.delenv("PENSTOCK_CHECK", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert unknown([Asked(files[0])]) == []
