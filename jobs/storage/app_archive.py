"""The app of a session's job as a ZIP file on S3: fetched, checked and unpacked."""

from __future__ import annotations

import hashlib
import io
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.jobs.configuration.session import AppArchive
from penstock.jobs.storage.errors import AppArchiveUnusable
from penstock.jobs.storage.objects import Objects

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


def unpack(archive: AppArchive, folder: Path, s3: S3Client | None = None) -> bytes:
    """Puts the modules of an app into a folder.

    Args:
        archive: of the app.
        folder: an empty one, or none yet.
        s3: client; by default a job's own.

    Returns:
        The archive itself, for the executors.

    Raises:
        AppArchiveUnusable: JOB-112.
        BucketUnreachable: JOB-009.
    """
    place, _, name = archive.uri.rpartition("/")
    content = Objects(place, s3).content(name)
    if content is None:
        raise _unusable(archive, "no such object", "the archive that was deployed")
    found = hashlib.sha256(content).hexdigest()
    if found != archive.sha256:
        raise _unusable(archive, f"SHA-256 {found}", f"SHA-256 {archive.sha256}, as it was deployed")
    if not zipfile.is_zipfile(io.BytesIO(content)):
        raise _unusable(archive, "no ZIP file", "a ZIP file")
    with zipfile.ZipFile(io.BytesIO(content)) as modules:
        # extractall leaves out what would lead out of the folder.
        modules.extractall(folder)
    return content


def _unusable(archive: AppArchive, given: str, need: str) -> AppArchiveUnusable:
    return AppArchiveUnusable(path=archive.uri, given=given, need=need, fix="deploy it: penstock deploy ENV jobs-charts")
