"""An image with a team's app, built on assembled bases."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from penstock.scripts.image.build import Request, build_with_apps
from penstock.scripts.image.errors import ImageNotBuilt
from penstock.sizing.errors import ToolMissing

NAME = "localhost/penstock-tests/team:1"


def built(request: Request) -> int:
    try:
        return build_with_apps(request)
    except ToolMissing as error:
        pytest.skip(error.render())


def package(folder: Path, first_line: str) -> Path:
    """A folder with a package of two modules."""
    (folder / "my_team").mkdir()
    (folder / "my_team/__init__.py").write_text(f"{first_line}\n")
    (folder / "my_team/rules.py").write_text("LIMIT = 5\n")
    return folder


def test_an_app_of_several_files_is_in_the_image(tmp_path: Path) -> None:
    file = tmp_path / "image.tar"
    apps = (package(tmp_path, "from my_team.rules import LIMIT"),)
    assert built(Request(NAME, apps, assembled=True, file=file)) > 10**9
    with tarfile.open(file) as archive:
        layers = [name for name in archive.getnames() if name.endswith(".tar")]
        names: set[str] = set()
        for layer in layers:
            inside = archive.extractfile(layer)
            assert inside is not None
            with tarfile.open(fileobj=inside) as content:
                names |= {name for name in content.getnames() if "opt/penstock/app/" in name}
    assert {"opt/penstock/app/my_team/__init__.py", "opt/penstock/app/my_team/rules.py"} <= names
    # Compiled in the build: a pod's root file system is read-only.
    assert any(name.endswith(".pyc") for name in names)


def test_an_app_that_cannot_be_imported_is_reported_with_its_line(tmp_path: Path) -> None:
    apps = (package(tmp_path, "import no_such_module"),)
    with pytest.raises(ImageNotBuilt) as raised:
        built(Request(NAME, apps, assembled=True))
    assert 'File "/opt/penstock/app/my_team/__init__.py", line 1' in str(raised.value.given)
