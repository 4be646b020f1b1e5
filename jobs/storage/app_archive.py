"""The app of a job as a ZIP file on S3, where the image has none or another version."""

from __future__ import annotations

import hashlib
import io
import zipfile
from pathlib import Path

from penstock.jobs.configuration.session import AppArchive
from penstock.jobs.storage.errors import BucketUnreachable
from penstock.jobs.storage.objects import Objects


def unpack(archive: AppArchive, folder: Path) -> None:
    """Puts the modules of an app into a folder.

    Args:
        archive: of the app.
        folder: an empty one.

    Raises:
        BucketUnreachable: JOB-009, also if the object is gone or is another one.
    """
    place, _, name = archive.uri.rpartition("/")
    content = Objects(place).content(name)
    if content is None or hashlib.sha256(content).hexdigest() != archive.sha256:
        given = "no such object" if content is None else "other content"
        need = f"the app's archive with SHA-256 {archive.sha256}"
        raise BucketUnreachable(path=archive.uri, given=given, need=need, fix="deploy the job again, which uploads it")
    with zipfile.ZipFile(io.BytesIO(content)) as modules:
        modules.extractall(folder)
