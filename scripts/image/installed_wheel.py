"""The wheel of an installed package, made again from what is installed: an index need not be reached for it.

Source: PyPA's "Binary distribution format": a wheel is an archive of the files that its RECORD names, with their paths in site-packages.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import zipfile
from collections.abc import Iterator
from importlib.metadata import Distribution
from pathlib import Path

# What an installer adds.
_OF_THE_INSTALLER = ("INSTALLER", "REQUESTED", "RECORD", "direct_url.json")
# The earliest time that an archive can have: the same files give the same wheel.
_TIME = (1980, 1, 1, 0, 0, 0)


def wheel_of(installed: Distribution, folder: Path) -> Path:
    """Writes the wheel of a distribution that is installed and is not editable.

    Args:
        installed: the distribution.
        folder: where the wheel is put; it exists.

    Returns:
        The file.
    """
    name = installed.metadata["Name"].replace("-", "_")
    file = folder / f"{name}-{installed.version}-py3-none-any.whl"
    record = io.StringIO(newline="")
    rows = csv.writer(record, lineterminator="\n")
    info = f"{name}-{installed.version}.dist-info"
    with zipfile.ZipFile(file, "w") as archive:
        for path, content in sorted(_contents(installed)):
            archive.writestr(zipfile.ZipInfo(path, _TIME), content, zipfile.ZIP_DEFLATED)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            rows.writerow((path, f"sha256={digest}", len(content)))
        rows.writerow((f"{info}/RECORD", "", ""))
        archive.writestr(zipfile.ZipInfo(f"{info}/RECORD", _TIME), record.getvalue(), zipfile.ZIP_DEFLATED)
    return file


def _contents(installed: Distribution) -> Iterator[tuple[str, bytes]]:
    for file in installed.files or []:
        # Scripts, which the installer writes from the entry points, are outside.
        if ".." not in file.parts and file.suffix != ".pyc" and file.name not in _OF_THE_INSTALLER:
            yield file.as_posix(), file.read_binary()
