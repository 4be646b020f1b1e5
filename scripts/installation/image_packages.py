"""Apps' own packages as the build of the jobs' image takes them: a folder for each lock, whichever jobs name it.

The Python packages are installed by the build, because their wheels depend on the platform; jars do not, and come from the user's cache::

    dist/packages/
    |-- 0123456789abcdef/
    |   |-- requirements.lock   without the packages of the image
    |   `-- wheels/             those of the folders that the lock names
    `-- fedcba9876543210/
        |-- jars.sha256
        `-- jars/
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable
from pathlib import Path

from penstock.infra.app_packages import AppPackages
from penstock.jobs.spec.jar_lock import JarLock
from penstock.jobs.spec.python_lock import PythonLock
from penstock.scripts.errors import FolderNotWritable
from penstock.scripts.installation.app_packages import install
from penstock.scripts.installation.cache import Cache
from penstock.scripts.progress import Steps

# Of the Dockerfile, where its build finds the folder.
BUILD = "/build/packages"
_KEY = re.compile(r"[0-9a-f]{16}")


def write(packages: Iterable[AppPackages], into: Path, steps: Steps, cache: Cache | None = None) -> list[str]:
    """Writes the folder; what it had of other locks goes.

    Args:
        packages: of the apps.
        into: the folder, such as ``dist/packages``.
        steps: shows progress.
        cache: the user's by default.

    Returns:
        The keys of the locks, sorted.

    Raises:
        PenstockError: TOOL-014 to TOOL-016, TOOL-041.
    """
    written: set[str] = set()
    try:
        into.mkdir(parents=True, exist_ok=True)
        for old in into.iterdir():
            if _KEY.fullmatch(old.name):
                shutil.rmtree(old)
        for one in packages:
            if one.python is not None and one.python.key not in written:
                written.add(one.python.key)
                _write_python(one.python, into / one.python.key)
            if one.jars is not None and one.jars.key not in written:
                written.add(one.jars.key)
                _write_jars(one.jars, install(AppPackages(jars=one.jars), steps, cache).jars, into / one.jars.key)
    except OSError as error:
        raise FolderNotWritable(path=str(into), given=error.strerror or "", need="a writable folder", fix="choose another --out") from None
    return sorted(written)


def _write_python(lock: PythonLock, folder: Path) -> None:
    wheels = folder / "wheels"
    wheels.mkdir(parents=True)
    for wheel in (wheel for links in lock.wheel_folders for wheel in links.glob("*.whl")):
        shutil.copy(wheel, wheels)
    text = lock.text(folder=f"{BUILD}/{lock.key}/wheels")
    (folder / "requirements.lock").write_text(text, encoding="utf-8")


def _write_jars(lock: JarLock, jars: Iterable[Path], folder: Path) -> None:
    (folder / "jars").mkdir(parents=True)
    for jar in jars:
        shutil.copy(jar, folder / "jars")
    (folder / "jars.sha256").write_text("".join(f"{jar.sha256}  {jar.name}\n" for jar in lock.jars), encoding="utf-8")
