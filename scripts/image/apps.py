"""A team's apps as the build of their image takes them: one folder with the modules, packages and SQL files of all of them."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from penstock.scripts.image import context
from penstock.scripts.image.errors import AppsOverlap, NotAnApp
from penstock.sizing.errors import PenstockError, raise_all

# Penstock's own name: an app with it would be imported in its place.
_OWN = "penstock"
_UNIVERSAL = "-none-any.whl"


def gather(apps: Iterable[Path], folder: Path) -> tuple[str, ...]:
    """Writes the apps into one folder.

    Args:
        apps: folders of modules, packages and SQL files, and wheels.
        folder: of the image's apps; need not exist yet.

    Returns:
        The top-level modules and packages, sorted.

    Raises:
        PenstockError: IMG-004, IMG-005; several are raised as `Faults`.
    """
    origin: dict[str, Path] = {}
    faults: list[PenstockError] = []
    for app in apps:
        try:
            names = _unpacked(app, folder / ".wheel") if app.is_file() else _top_level(app)
        except NotAnApp as fault:
            faults.append(fault)
            continue
        for path in names:
            stem = path.stem if path.suffix == ".py" else path.name
            if stem == _OWN or stem in origin:
                given = f"{path.name}, which {'is also in ' + str(origin[stem]) if stem in origin else 'is the name of Penstock itself'}"
                faults.append(AppsOverlap(path=str(app), given=given, need="each name once", fix="rename one, or leave one app out"))
                continue
            origin[stem] = app
            _copy(path, folder / path.name)
        shutil.rmtree(folder / ".wheel", ignore_errors=True)
    raise_all(faults)
    return tuple(sorted(name for name in origin if name.isidentifier()))


def _top_level(folder: Path) -> list[Path]:
    try:
        found = sorted(path for path in folder.iterdir() if _is_part(path))
    except OSError as error:
        raise _no_app(folder, error.strerror or "unreadable", "a folder or a wheel") from None
    if not found:
        raise _no_app(folder, "nothing to import", "a folder with .py or .sql files, or with packages that have an __init__.py")
    return found


def _is_part(path: Path) -> bool:
    if path.is_dir():
        return path.name.isidentifier() and (path / "__init__.py").is_file()
    return path.suffix == ".sql" or (path.suffix == ".py" and path.stem.isidentifier() and path.stem != "__init__")


def _unpacked(wheel: Path, folder: Path) -> list[Path]:
    if not wheel.name.endswith(_UNIVERSAL):
        raise _no_app(wheel, wheel.name, f"a wheel whose name ends in {_UNIVERSAL}: packages for one platform belong in spec.packages")
    try:
        with zipfile.ZipFile(wheel) as archive:
            if not any(name.endswith(".dist-info/WHEEL") for name in archive.namelist()):
                raise _no_app(wheel, "no .dist-info/WHEEL", "a wheel, as python -m build writes it")
            archive.extractall(folder, list(_code(archive)))
    except (zipfile.BadZipFile, OSError) as error:
        raise _no_app(wheel, str(error), "a wheel, as python -m build writes it") from None
    if not folder.is_dir():
        raise _no_app(wheel, "nothing to import", "a wheel with a module or a package")
    return _top_level(folder)


def _code(archive: zipfile.ZipFile) -> Iterator[str]:
    for name in archive.namelist():
        if not PurePosixPath(name).parts[0].endswith((".dist-info", ".data")):
            yield name


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))
    else:
        context.place(source, target)


def _no_app(path: Path, given: str, need: str) -> NotAnApp:
    return NotAnApp(path=str(path), given=given, need=need, fix="name another folder or wheel with --app")
