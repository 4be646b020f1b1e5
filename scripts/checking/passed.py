"""The checks that have passed, in the user's cache: an app that has not changed since need not be checked again.

An entry is named by what the check was asked: the spec's path, the app path, and the versions of Penstock and Spark. It has the checksum of
each file that the result depends on: the spec, the app, the modules that it imports from the folders of its team, and schemas. Installed
packages of others are not among them.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from penstock.scripts import layout
from penstock.scripts.installation.cache import Cache
from penstock.scripts.local.spark_home import spark_home

_FOLDER = "passed-checks"
# Of Penstock: what builds and analyzes an app.
_PACKAGES = ("jobs", "sizing")


def is_known(spec: Path, app_path: Sequence[Path], cache: Cache | None = None) -> bool:
    """Whether a check has passed, and nothing of what it depends on has changed since.

    Args:
        spec: of the job.
        app_path: folders of the app.
        cache: the cache; the user's by default.
    """
    try:
        entry = json.loads(_entry(spec, app_path, cache).read_text(encoding="utf-8"))
        return bool(entry) and all(_checksum(Path(file)) == checksum for file, checksum in entry.items())
    except (OSError, ValueError, AttributeError):
        return False


def remember(spec: Path, app_path: Sequence[Path], files: Iterable[Path], cache: Cache | None = None) -> None:
    """Notes that a check has passed; a cache that can't be written to remembers nothing.

    Args:
        spec: of the job.
        app_path: folders of the app.
        files: that the result depends on.
        cache: the cache; the user's by default.
    """
    with contextlib.suppress(OSError):
        entry = _entry(spec, app_path, cache)
        entry.parent.mkdir(parents=True, exist_ok=True)
        checksums = {str(file.resolve()): _checksum(file) for file in files}
        written = entry.with_suffix(".new")
        written.write_text(json.dumps(checksums, indent=1), encoding="utf-8")
        written.replace(entry)


def _entry(spec: Path, app_path: Sequence[Path], cache: Cache | None) -> Path:
    asked = [str(spec.resolve()), *(str(folder.resolve()) for folder in app_path), str(spark_home()), _version()]
    key = hashlib.sha256("\n".join(asked).encode()).hexdigest()[:16]
    return (cache or Cache.of_user()).folder / _FOLDER / f"{key}.json"


def _version() -> str:
    """Of Penstock's code, by the sizes and times of its files: a checkout changes without its version."""
    stats = ((file, file.stat()) for package in _PACKAGES for file in sorted((layout.ROOT / package).rglob("*.py")))
    return " ".join(f"{file.name} {stat.st_size} {stat.st_mtime_ns}" for file, stat in stats)


def _checksum(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
