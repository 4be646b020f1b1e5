"""The tiers that CI does not run: what breaks them before a test begins is found here."""

from __future__ import annotations

import subprocess
import sys

from penstock.scripts.layout import ROOT


def test_every_test_of_the_slow_tiers_is_importable_and_has_its_fixtures() -> None:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-n0",
        "-q",
        "-m",
        "chaos or pods",
        "--setup-plan",
        "--maxfail=100",
        "-p",
        "no:cacheprovider",
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, "\n".join(line for line in done.stdout.splitlines() if line.startswith(("E ", "ERROR")))
