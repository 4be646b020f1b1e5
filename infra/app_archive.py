"""The app of a job as a ZIP file: what a session's driver gets in place of the code in its image."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.infra.errors import AppTooLarge
from penstock.jobs.spec import SpecFile
from penstock.jobs.spec.app_module import is_sql
from penstock.jobs.spec.app_sources import app_sources

# Ours: modules are text; what is larger is data, which belongs into the image or into a bucket.
MOST_BYTES = 5 * 1024 * 1024
# The kit's own apps are those of the image.
_OWN = "penstock"
# The earliest that a ZIP file can have: equal modules give equal files.
_TIME = (1980, 1, 1, 0, 0, 0)
_READABLE = 0o100644 << 16


@dataclass(frozen=True)
class AppZip:
    """A ZIP file.

    Args:
        content: of the file.
        sha256: of the content, in hexadecimal digits.
    """

    content: bytes
    sha256: str

    def key(self, job: str) -> str:
        """Its key in the bucket of the checkpoints, in the folder of its job.

        Args:
            job: the job's name.
        """
        return f"{job}/apps/{self.sha256}.zip"


def is_of_the_image(spec: SpecFile) -> bool:
    """Whether the app of a job is one of Penstock's own, which a session's job has from the image, too.

    Args:
        spec: of the job.
    """
    return spec.job.spec.app.partition(".")[0] == _OWN


def app_zip(spec: SpecFile, app_path: Sequence[Path] = ()) -> AppZip | None:
    """The modules of a job's app, and those that it imports from the team's folders.

    Args:
        spec: of the job.
        app_path: folders in which its app is looked up besides that of the spec.

    Returns:
        None if there are none: the app is one of Penstock's own, or SQL without functions in Python.

    Raises:
        PenstockError: INF-087, and those of an app that is not found.
    """
    app = spec.job.spec.app
    if is_of_the_image(spec):
        return None
    sources = app_sources(app, spec.path.parent, app_path)
    modules = {path: file.read_bytes() for name, one in sources.items() if not is_sql(name) for path, file in _files(name, one)}
    if not modules:
        return None
    content = _zipped(modules)
    if len(content) > MOST_BYTES:
        largest = max(modules, key=lambda path: len(modules[path]))
        need = f"at most {MOST_BYTES:,} bytes of modules; the largest is {largest} with {len(modules[largest]):,}"
        fix = "move data into a bucket, and packages into the job's lock (packages.python)"
        fault = AppTooLarge(given=f"{len(content):,} bytes", need=need, fix=fix)
        raise spec.document.locate(fault, ("spec", "app"))
    return AppZip(content, hashlib.sha256(content).hexdigest())


def _files(module: str, file: Path) -> Iterator[tuple[str, Path]]:
    """Where Python finds a module, and the packages that it is in: one that is left out would be that of the image, with all it has."""
    parts, is_package = module.split("."), file.name == "__init__.py"
    yield "/".join(parts) + ("/__init__.py" if is_package else ".py"), file
    folder = file.parent.parent if is_package else file.parent
    for length in range(len(parts) - 1, 0, -1):
        package = folder / "__init__.py"
        if package.is_file():
            yield f"{'/'.join(parts[:length])}/__init__.py", package
        folder = folder.parent


def _zipped(modules: Mapping[str, bytes]) -> bytes:
    """Not compressed: what compression makes of it depends on the library's version."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_STORED) as archive:
        for path, content in sorted(modules.items()):
            entry = zipfile.ZipInfo(path, date_time=_TIME)
            entry.external_attr = _READABLE
            # Otherwise it says on which system it was made.
            entry.create_system = 3
            archive.writestr(entry, content)
    return written.getvalue()
