"""The source files of an app, read without importing it."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.jobs.spec.app_sources import app_sources, content_hash
from penstock.jobs.spec.errors import AppNotFound


def _files(folder: Path, **texts: str) -> None:
    for name, text in texts.items():
        file = folder.joinpath(*name.split("__"))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.with_suffix(".py").write_text(text, encoding="utf-8")


def _init(folder: Path, text: str = "") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "__init__.py").write_text(text, encoding="utf-8")


def test_modules_of_the_team_are_found_through_each_other(tmp_path: Path) -> None:
    _init(tmp_path / "team")
    _files(
        tmp_path,
        team__app="import os\nfrom . import rules\nfrom penstock import Job\n\ndef build(job):\n    from team.late import late\n",
        team__rules="from .tables import TABLES\nimport helper.deep",
        team__tables="import team.app",
        team__late="",
        team__unused="",
        helper="",
    )
    found = app_sources("team.app", tmp_path)
    assert sorted(found) == ["helper", "team", "team.app", "team.late", "team.rules", "team.tables"]
    assert found["team.rules"] == tmp_path / "team" / "rules.py"


def test_the_kits_own_modules_and_installed_ones_are_no_part_of_an_app(tmp_path: Path) -> None:
    found = app_sources("penstock.jobs.apps.user_credit", tmp_path)
    assert list(found) == ["penstock.jobs.apps.user_credit"]


def test_the_app_path_is_searched_after_the_folder_of_the_spec(tmp_path: Path) -> None:
    beside, further = tmp_path / "beside", tmp_path / "further"
    _files(beside, app="import rules")
    _files(further, rules="RULE = 1", app="")
    assert app_sources("app", beside, [further]) == {"app": beside / "app.py", "rules": further / "rules.py"}


def test_a_file_with_a_syntax_error_imports_nothing(tmp_path: Path) -> None:
    _files(tmp_path, app="import rules\ndef", rules="")
    assert list(app_sources("app", tmp_path)) == ["app"]


def test_an_app_in_sql_is_its_file(tmp_path: Path) -> None:
    (tmp_path / "pages.sql").write_text("SELECT 1", encoding="utf-8")
    assert app_sources("pages.sql", tmp_path) == {"pages.sql": tmp_path / "pages.sql"}


def test_a_missing_app_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(AppNotFound):
        app_sources("nowhere", tmp_path)


def test_the_hash_is_of_names_and_content_alone(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    for folder in (one, other):
        _files(folder, app="import rules", rules="RULE = 1")
    before = content_hash(app_sources("app", one))
    assert before == content_hash(app_sources("app", other))
    _files(other, rules="RULE = 2")
    assert before != content_hash(app_sources("app", other))
    assert content_hash({"a": one / "app.py", "b": one / "rules.py"}) != content_hash({"a": one / "rules.py", "b": one / "app.py"})
