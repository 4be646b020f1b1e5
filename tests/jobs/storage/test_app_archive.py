"""The app of a session's job, fetched from an emulated S3."""

from __future__ import annotations

import hashlib
import io
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock.jobs.configuration.session import AppArchive
from penstock.jobs.storage.app_archive import unpack
from penstock.jobs.storage.errors import AppArchiveUnusable

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

BUCKET = "checkpoints"


def _zipped(**modules: str) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        for name, text in modules.items():
            archive.writestr(name, text)
    return written.getvalue()


def _archive(content: bytes, name: str) -> AppArchive:
    return AppArchive(uri=f"s3a://{BUCKET}/clicks/apps/{name}", sha256=hashlib.sha256(content).hexdigest())


def _put(s3: S3Client, content: bytes, name: str) -> AppArchive:
    s3.put_object(Bucket=BUCKET, Key=f"clicks/apps/{name}", Body=content)
    return _archive(content, name)


def test_its_modules_are_in_the_folder_and_nothing_is_outside_of_it(s3: S3Client, tmp_path: Path) -> None:
    content = _zipped(**{"app.py": "A = 1\n", "team/helper.py": "B = 2\n", "../outside.py": "C = 3\n"})
    assert unpack(_put(s3, content, "whole.zip"), tmp_path / "app", s3) == content
    assert (tmp_path / "app" / "app.py").read_text(encoding="utf-8") == "A = 1\n"
    assert (tmp_path / "app" / "team" / "helper.py").is_file()
    assert not (tmp_path / "outside.py").exists()


def test_one_that_is_gone_or_another_or_no_archive_is_refused(s3: S3Client, tmp_path: Path) -> None:
    changed = _put(s3, _zipped(**{"app.py": "A = 2\n"}), "changed.zip")
    cases = {
        "no such object": _archive(b"", "gone.zip"),
        f"SHA-256 {changed.sha256}": changed.model_copy(update={"sha256": "0" * 64}),
        "no ZIP file": _put(s3, b"def build(job): ...", "text.zip"),
    }
    for given, archive in cases.items():
        with pytest.raises(AppArchiveUnusable) as raised:
            unpack(archive, tmp_path / "app", s3)
        assert (raised.value.code, raised.value.given, raised.value.path) == ("JOB-112", given, archive.uri)
    assert not (tmp_path / "app").exists()
