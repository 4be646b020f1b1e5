"""The wheel, built as a release builds it: by the locked setuptools, from what lies in the checkout."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from penstock.scripts.layout import ROOT

# What setuptools reads; the folders behind the links of penstock/ come with them.
_SOURCES = ("penstock", "sizing", "jobs", "infra", "scripts", "testing", "pyproject.toml", "README.md", "LICENSE")


def sources(folder: Path) -> Path:
    """A copy of what the wheel is built from: setuptools leaves its own folders there."""
    folder.mkdir(parents=True)
    for name in _SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, folder / name)
    return folder


def build(folder: Path) -> Path:
    """Builds the wheel below an empty folder; returns its path."""
    source = sources(folder / "source")
    command = [sys.executable, "-m", "pip", "wheel", "--no-index", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder / "dist")]
    subprocess.run([*command, str(source)], check=True, capture_output=True, timeout=300)
    (wheel,) = (folder / "dist").glob("*.whl")
    return wheel
