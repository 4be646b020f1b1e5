"""An app's wheel and jar as a team builds them, with their hashes, and a spec that names locks."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Mapping
from pathlib import Path

SPEC = """\
apiVersion: penstock/v1
kind: StreamingJob
metadata: {name: clicks}
spec:
  app: app
  packages: {python: requirements.lock, jars: jars.lock}
  parallelism: 1
  executor: {slots: 1, memory: 2g}
"""


def spec(folder: Path, *, python: str | None = None, jars: str | None = None, text: str = SPEC) -> Path:
    """Writes a spec with an app and its locks; a lock that is None is neither written nor named."""
    for name, content, named in (("requirements.lock", python, "python: requirements.lock"), ("jars.lock", jars, "jars: jars.lock")):
        if content is None:
            text = text.replace(f", {named}", "").replace(f"{named}, ", "").replace(named, "")
        else:
            (folder / name).write_text(content, encoding="utf-8")
    (folder / "app.py").write_text("", encoding="utf-8")
    (folder / "job.yaml").write_text(text, encoding="utf-8")
    return folder / "job.yaml"


def wheel(
    folder: Path, modules: Mapping[str, str], *, name: str = "a_teams_pages", version: str = "1.0", tag: str = "py3-none-any"
) -> Path:
    """Builds a wheel. Source: Python's packaging specifications, "Binary distribution format"."""
    folder.mkdir(parents=True, exist_ok=True)
    path, info = folder / f"{name}-{version}-{tag}.whl", f"{name}-{version}.dist-info"
    files = {
        **modules,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: {tag}\n",
    }
    record = "".join(f"{file},,\n" for file in [*files, f"{info}/RECORD"])
    with zipfile.ZipFile(path, "w") as archive:
        for file, content in {**files, f"{info}/RECORD": record}.items():
            archive.writestr(zipfile.ZipInfo(file, (2026, 1, 1, 0, 0, 0)), content)
    return path


def jar(folder: Path, content: str = "") -> Path:
    """Writes a jar without classes, ``our-functions.jar``."""
    folder.mkdir(exist_ok=True)
    with zipfile.ZipFile(folder / "our-functions.jar", "w") as archive:
        archive.writestr(zipfile.ZipInfo("README"), content)
    return folder / "our-functions.jar"


def sha256(file: Path) -> str:
    """The checksum, hexadecimal."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def lock_of(file: Path, name: str = "a-teams-pages", version: str = "1.0") -> str:
    """A lock of one wheel in the folder ``wheels`` beside it."""
    return f"--find-links wheels\n{name}=={version} \\\n    --hash=sha256:{sha256(file)}\n    # via app\n"
