from __future__ import annotations

import sys
from pathlib import Path

import pytest

from penstock.scripts.emulation import localstack_python
from penstock.scripts.emulation.localstack_python import NAME, VARIABLE, find


def _command(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def _python(path: Path, version: str = "(3, 13)") -> Path:
    return _command(path, f"echo '{version}'")


@pytest.fixture
def surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    # This Python may be 3.13 itself: it is skipped.
    monkeypatch.setattr(sys, "executable", str(tmp_path / "no-python"))
    return {"PATH": str(tmp_path / "bin"), "HOME": str(tmp_path / "home")}


def test_one_in_the_path_is_found(surroundings: dict[str, str], tmp_path: Path) -> None:
    assert find(surroundings) is None
    made = _python(tmp_path / "bin" / NAME)
    assert find(surroundings) == str(made)


def test_a_command_that_does_not_run_is_passed_over_for_one_that_does(surroundings: dict[str, str], tmp_path: Path) -> None:
    _command(tmp_path / "bin" / NAME, "echo 'pyenv: python3.13: command not found' >&2; exit 127")
    made = _python(tmp_path / "home" / ".pyenv" / "versions" / "3.13.0" / "bin" / NAME)
    assert find(surroundings) == str(made)


def test_a_named_one_is_taken_and_no_other(surroundings: dict[str, str], tmp_path: Path) -> None:
    _python(tmp_path / "bin" / NAME)
    other = _python(tmp_path / "elsewhere" / "python")
    assert find({**surroundings, VARIABLE: str(other)}) == str(other)
    assert find({**surroundings, VARIABLE: str(tmp_path / "nothing")}) is None


def test_one_of_another_version_is_none(surroundings: dict[str, str], tmp_path: Path) -> None:
    _python(tmp_path / "bin" / NAME, "(3, 12)")
    assert find(surroundings) is None


def test_this_python_is_taken_if_it_is_of_the_version(
    surroundings: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = sys.version_info[:2]
    this = _python(tmp_path / "this" / "python", str(tuple(own)))
    monkeypatch.setattr(sys, "executable", str(this))
    monkeypatch.setattr(localstack_python, "VERSION", tuple(own))
    assert find(surroundings) == str(this)
