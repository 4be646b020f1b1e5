"""The scripts of the checkout let Python keep its bytecode, whatever the environment says."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from penstock.scripts.layout import ROOT

_REPORT = '#!/bin/sh\necho "[$PYTHONPYCACHEPREFIX] [$PYTHONDONTWRITEBYTECODE]"\n'


def _ran(script: str, checkout: Path, **environment: str) -> str:
    """What a script's Python has in its environment, in a checkout whose set-up and Python only say that."""
    for name, text in {"scripts/setup": "#!/bin/sh\n", ".venv/bin/python": _REPORT}.items():
        program = checkout / name
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(text, encoding="utf-8")
        program.chmod(0o755)
    shutil.copy(ROOT / "scripts" / script, checkout / "scripts")
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPYCACHEPREFIX"}
    command = [str(checkout / "scripts" / script)]
    return subprocess.run(command, env={**inherited, **environment}, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize("script", ["test", "quickstart", "benchmark"])
def test_bytecode_is_kept_in_the_checkouts_own_folder(script: str, tmp_path: Path) -> None:
    checkout = tmp_path.resolve()
    assert _ran(script, checkout, PYTHONDONTWRITEBYTECODE="1") == f"[{checkout}/.penstock/bytecode] []"
    assert _ran(script, checkout, PYTHONPYCACHEPREFIX="/elsewhere") == "[/elsewhere] []"
