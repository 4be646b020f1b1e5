"""Python interpreter for LocalStack's host mode, which requires version 3.13."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

# Names the interpreter on machines with several.
VARIABLE = "PENSTOCK_LOCALSTACK_PYTHON"
NAME = "python3.13"
VERSION = (3, 13)
# Timeout for an interpreter to print its version.
ASK_LIMIT_S = 20


def find(environment: Mapping[str, str] = os.environ) -> str | None:
    """Locate a working interpreter of the required version.

    A command of that name may exist and still fail: pyenv creates one for every version that any of its folders uses.

    Args:
        environment: environment variables to use.

    Returns:
        Its path; None if there is none.
    """
    return next((path for path in _candidates(environment) if _is_right(path)), None)


def _candidates(environment: Mapping[str, str]) -> Iterator[str]:
    if named := environment.get(VARIABLE):
        yield named
        return
    if sys.version_info[:2] == VERSION:
        yield sys.executable
    if command := shutil.which(NAME, path=environment.get("PATH", os.defpath)):
        yield command
    home = Path(environment.get("HOME") or Path.home())
    pyenv = Path(environment.get("PYENV_ROOT") or home / ".pyenv")
    for folder in (pyenv / "versions", home / ".local" / "share" / "uv" / "python"):
        yield from (str(path) for path in sorted(folder.glob(f"*/bin/{NAME}"), reverse=True))


def _is_right(path: str) -> bool:
    ask = [path, "-c", "import sys, venv; print(sys.version_info[:2])"]
    try:
        said = subprocess.run(ask, capture_output=True, text=True, timeout=ASK_LIMIT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return said.stdout.strip() == str(VERSION)
