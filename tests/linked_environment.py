"""An environment with the packages of some extras and no others, made in seconds: by links to those that the set-up has installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from collections.abc import Iterable
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from penstock.scripts.layout import ROOT

_SELF = "penstock-kit"


def distributions(extras: Iterable[str]) -> set[str]:
    """The names of the distributions that ``penstock-kit[extras]`` comes to, by what each says that it requires."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    result: set[tuple[str, str]] = set()
    pending = [Requirement(text) for text in project["dependencies"]] + [Requirement(f"{_SELF}[{extra}]") for extra in extras]
    while pending:
        requirement = pending.pop()
        name = canonicalize_name(requirement.name)
        for extra in sorted(requirement.extras) or [""]:
            if (name, extra) in result:
                continue
            result.add((name, extra))
            texts = project["optional-dependencies"][extra] if name == _SELF else _requires(name)
            pending += [one for one in map(Requirement, texts) if one.marker is None or one.marker.evaluate({"extra": extra})]
        if requirement.extras:
            pending.append(Requirement(name)) if name != _SELF else None
    return {name for name, _ in result if name != _SELF and _installed(name) is not None}


def create(folder: Path, extras: Iterable[str], wheel: Path) -> Path:
    """Makes an environment with the wheel and the distributions of the extras.

    Args:
        folder: where; it is not there yet.
        extras: of the wheel's distribution.
        wheel: Penstock's.

    Returns:
        Its Python.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = folder / "lib" / version / "site-packages"
    for name in distributions(extras):
        installed = _installed(name)
        assert installed is not None
        _link(installed, packages)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(packages)
    command = folder / "bin" / "penstock"
    command.write_text(f"#!{folder}/bin/python\nimport sys\nfrom penstock.scripts.cli.command import main\nsys.exit(main())\n")
    command.chmod(0o755)
    return folder / "bin" / "python"


def _requires(name: str) -> list[str]:
    installed = _installed(name)
    return [] if installed is None else installed.requires or []


def _installed(name: str) -> Distribution | None:
    try:
        return distribution(name)
    except PackageNotFoundError:
        # Its marker is for another Python or system.
        return None


def _link(result: Distribution, packages: Path) -> None:
    base = Path(sysconfig.get_path("purelib")).resolve()
    for file in result.files or []:
        source = Path(str(result.locate_file(file))).resolve()
        if source.suffix == ".pyc" or not source.is_relative_to(base) or not source.exists():
            continue
        target = packages / source.relative_to(base)
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.stat().st_dev == packages.stat().st_dev:
            if not target.exists():
                os.link(source, target)
        else:
            shutil.copy(source, target)
