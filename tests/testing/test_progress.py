from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TEST = """\
import threading

import pytest

from penstock.testing.plugin import _progress


@pytest.fixture
def long(pytestconfig):
    show = _progress(pytestconfig)
    thread = threading.Thread(target=show, args=("network: 42 created in 26 s",))
    thread.start()
    thread.join()


def test_one(long):
    print("captured")
"""


def test_steps_are_shown_although_the_output_of_tests_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "test_one.py"
    file.write_text(TEST)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(file)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "\n  network: 42 created in 26 s\n" in f"\n{ran.stdout}"
    assert "captured" not in ran.stdout
