"""The archive of an app on S3: fetched, checked and unpacked by the process of its job."""

from __future__ import annotations

import hashlib
import io
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from penstock.jobs.configuration.session import AppArchive
from penstock.jobs.session.errors import AppArchiveUnusable
from penstock.jobs.storage.s3 import place_of, shared_client

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


def fetched(archive: AppArchive, job: str, folder: Path, s3: S3Client | None = None) -> tuple[Path, Path]:
    """The archive as a file for the executors, and the folder with its modules for this process, whose errors name their files.

    Args:
        archive: of the app.
        job: name of the job.
        folder: an existing folder for both.
        s3: client; by default a job's own.

    Raises:
        AppArchiveUnusable: JOB-112.
        BucketUnreachable: JOB-009, its address is none of S3.
    """
    content = _content(archive, s3 or shared_client())
    # By its job and its content: Spark has one folder for the files of all jobs, in which two may not have the same name, and workers keep
    # the modules that they have imported from one.
    file, unpacked = folder / f"{job}-{archive.sha256[:16]}.zip", folder / "app"
    file.write_bytes(content)
    with zipfile.ZipFile(io.BytesIO(content)) as modules:
        # extractall leaves out what would lead out of the folder.
        modules.extractall(unpacked)
    return file, unpacked


def _content(archive: AppArchive, s3: S3Client) -> bytes:
    bucket, key = place_of(archive.uri)
    try:
        content = s3.get_object(Bucket=bucket, Key=key)["Body"].read()
    except (ClientError, BotoCoreError) as error:
        raise _unusable(archive, str(error), "an archive that the job's role can read") from error
    found = hashlib.sha256(content).hexdigest()
    if found != archive.sha256:
        raise _unusable(archive, f"SHA-256 {found}", f"SHA-256 {archive.sha256}, as it was deployed")
    if not zipfile.is_zipfile(io.BytesIO(content)):
        raise _unusable(archive, "no ZIP file", "a ZIP file")
    return content


def _unusable(archive: AppArchive, given: str, need: str) -> AppArchiveUnusable:
    return AppArchiveUnusable(path=archive.uri, given=given, need=need, fix="deploy it: penstock deploy ENV jobs jobs-charts")
