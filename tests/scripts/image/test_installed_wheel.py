"""The wheel that is made again of an installed package, of one that the tests need anyway."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import subprocess
import sys
import zipfile
from importlib.metadata import distribution
from pathlib import Path

from penstock.scripts.image.installed_wheel import wheel_of

NAME = "iniconfig"


def test_it_has_all_files_with_their_checksums_and_is_the_same_each_time(tmp_path: Path) -> None:
    installed = distribution(NAME)
    (tmp_path / "again").mkdir()
    wheel = wheel_of(installed, tmp_path)
    assert wheel.read_bytes() == wheel_of(installed, tmp_path / "again").read_bytes()
    with zipfile.ZipFile(wheel) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
        assert {one.compress_type for one in archive.infolist()} == {zipfile.ZIP_DEFLATED}
    record = f"{NAME}-{installed.version}.dist-info/RECORD"
    listed = {path: (checksum, size) for path, checksum, size in csv.reader(io.StringIO(contents.pop(record).decode()))}
    assert listed.pop(record) == ("", "")
    assert listed.keys() == contents.keys() >= {f"{NAME}/__init__.py", f"{NAME}-{installed.version}.dist-info/METADATA"}
    for path, content in contents.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        assert listed[path] == (f"sha256={digest}", str(len(content)))


def test_pip_installs_it(tmp_path: Path) -> None:
    wheel = wheel_of(distribution(NAME), tmp_path)
    options = ["--quiet", "--no-deps", "--no-index", "--target", str(tmp_path / "installed"), str(wheel)]
    subprocess.run([sys.executable, "-m", "pip", "install", *options], check=True, timeout=60)
    assert (tmp_path / f"installed/{NAME}/__init__.py").is_file()
