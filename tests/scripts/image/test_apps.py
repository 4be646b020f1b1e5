from __future__ import annotations

from pathlib import Path

import pytest

from penstock.scripts.image.apps import gather
from penstock.scripts.image.errors import AppsOverlap, NotAnApp
from penstock.sizing.errors import PenstockError
from tests.app_locks import wheel


def package(folder: Path, name: str = "my_team") -> Path:
    """A folder with a package of two modules, an SQL app, and what does not belong into an image."""
    for file in (f"{name}/__init__.py", f"{name}/rules.py", f"{name}/__pycache__/rules.pyc", "top.sql", "README.md", "data/notes.txt"):
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text("")
    return folder


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_folders_and_wheels_become_one_folder_of_code(tmp_path: Path) -> None:
    built = wheel(tmp_path / "dist", {"pages/__init__.py": "", "pages/texts.txt": "", "one.py": ""})
    names = gather([package(tmp_path / "a"), built], tmp_path / "out")
    assert names == ("my_team", "one", "pages")
    assert files(tmp_path / "out") == {
        "my_team/__init__.py",
        "my_team/rules.py",
        "top.sql",
        "pages/__init__.py",
        "pages/texts.txt",
        "one.py",
    }


def test_all_that_is_no_app_is_reported_at_once(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    native = wheel(tmp_path / "dist", {"fast.py": ""}, tag="cp311-cp311-manylinux_2_17_x86_64")
    (tmp_path / "text-1.0-py3-none-any.whl").write_text("no wheel")
    apps = [tmp_path / "empty", tmp_path / "missing", native, tmp_path / "text-1.0-py3-none-any.whl"]
    with pytest.raises(PenstockError) as raised:
        gather(apps, tmp_path / "out")
    assert [type(fault) for fault in raised.value.errors] == [NotAnApp] * 4
    assert [fault.path for fault in raised.value.errors] == [str(app) for app in apps]


@pytest.mark.parametrize("name", ["my_team", "penstock"])
def test_a_name_that_another_app_or_penstock_has_is_reported(tmp_path: Path, name: str) -> None:
    with pytest.raises(PenstockError) as raised:
        gather([package(tmp_path / "a"), wheel(tmp_path / "dist", {f"{name}.py": ""})], tmp_path / "out")
    (fault,) = raised.value.errors
    assert isinstance(fault, AppsOverlap)
    assert fault.path.endswith(".whl")
