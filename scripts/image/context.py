"""The folders that images are built from: copies of what they need, and nothing else."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from importlib.resources import files
from pathlib import Path

from penstock.scripts.image.errors import ImageNotBuilt
from penstock.scripts.image.installed_wheel import wheel_of
from penstock.scripts.image.workspace import Workspace
from penstock.scripts.layout import ROOT

# Of every file of a context: the same content gives the same layers. Source of the date: the jar of the JVM's classes.
TIME_S = 1_767_225_600
DOCKERFILE = "infra/image/Dockerfile"
# Of the folder infra/image; the lock's and the Dockerfile's changes are changes of the image too.
_IMAGE = ("Dockerfile", "class_path.py", "image.lock", "log4j2.properties", "run.py", "slim_spark.py")
_INSTALLATION = ("spark-jars.pom.xml", "jars.sha256")
_TRAINING = "class_data_training.py"
# What setuptools reads; the folders behind the links of penstock/ come with them.
_SOURCES = ("penstock", "sizing", "jobs", "infra", "scripts", "testing", "pyproject.toml", "README.md", "LICENSE")
_DISTRIBUTION = "penstock-kit"
_LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.pyc")


def image_folder() -> Path:
    """The folder of the Dockerfile and its files, in a checkout and in an installed package alike."""
    return Path(str(files("penstock.infra"))) / "image"


def fill(folder: Path, wheel: Path) -> None:
    """Writes what the Dockerfile copies, except the apps' packages, which `image_packages.write` puts into ``dist/packages``.

    Args:
        folder: the context.
        wheel: Penstock's.
    """
    for name in _IMAGE:
        place(image_folder() / name, folder / "infra/image" / name)
    installation = Path(str(files("penstock.scripts.installation"))) / "data"
    for name in _INSTALLATION:
        place(installation / name, folder / "scripts/installation/data" / name)
    training = Path(str(files("penstock.scripts.local"))) / _TRAINING
    place(training, folder / "scripts/local" / _TRAINING)
    jvm = Path(str(files("penstock.jobs"))) / "jvm"
    shutil.copytree(jvm, folder / "jobs/jvm", ignore=_LEFT_OUT)
    place(wheel, folder / "dist" / wheel.name)


def kit_inputs() -> str:
    """A checksum of Penstock's own part of the image: the Dockerfile, the locks and all sources of the wheel."""
    if not _is_checkout():
        return checksum(ROOT / "penstock")
    return checksum(*(path for name in _SOURCES if (path := ROOT / name).exists()))


def _is_checkout() -> bool:
    return (ROOT / "pyproject.toml").is_file()


def penstock_wheel(work: Workspace) -> Path:
    """Penstock's wheel, built from the checkout, or made again from the installed package.

    Args:
        work: the workspace.

    Raises:
        ImageNotBuilt: IMG-010.
    """
    work.progress("building Penstock's wheel")
    source, out = work.temporary / "source", work.temporary / "wheel"
    if not _is_checkout():
        out.mkdir()
        return wheel_of(_installed(), out)
    copy_sources(source)
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--no-index",
        "--no-deps",
        "--no-build-isolation",
        "--wheel-dir",
        str(out),
        str(source),
    ]
    work.run("wheel", command, environment={**os.environ, "SOURCE_DATE_EPOCH": str(TIME_S), "TMPDIR": str(work.temporary)})
    (wheel,) = out.glob("*.whl")
    return wheel


def _installed() -> Distribution:
    try:
        return distribution(_DISTRIBUTION)
    except PackageNotFoundError:
        need = "a checkout of Penstock, or the package as pip and uv install it"
        raise ImageNotBuilt(path=str(ROOT), given="neither", need=need, fix=f"install {_DISTRIBUTION}") from None


def copy_sources(folder: Path) -> None:
    """Copies what the wheel is built from: setuptools leaves folders of its own beside it.

    Args:
        folder: that does not exist yet.
    """
    folder.mkdir(parents=True)
    for name in _SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=_LEFT_OUT)
        else:
            shutil.copy(ROOT / name, folder / name)


def place(source: Path, target: Path) -> None:
    """Copies a file; creates its folder."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, target)


def settle(folder: Path) -> None:
    """Gives all files of a context the same time and readable modes, on which layers depend."""
    for path in folder.rglob("*"):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
            os.utime(path, (TIME_S, TIME_S))


def checksum(*parts: Path | str) -> str:
    """A checksum of texts, files and folders, which does not depend on where they are.

    Returns:
        16 hexadecimal digits.
    """
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, str):
            digest.update(f"{part}\0".encode())
            continue
        for file in [part] if part.is_file() else sorted(_files(part)):
            inside = file.name if file == part else str(file.relative_to(part))
            digest.update(f"{part.name}/{inside}\0".encode() + hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:16]


def _files(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            if path.name != "__pycache__":
                yield from _files(path)
        elif path.is_file():
            yield path
