"""Plots of results, by matplotlib in a Python environment of its own: no test and no job needs it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from penstock.scripts.installation.tool_environment import ToolEnvironment

_FOLDER = Path(__file__).parent


def draw(results: Path, into: Path) -> None:
    """Draws a file of results as SVG.

    Args:
        results: as `benchmarks.streaming.results` writes them.
        into: the file to write.

    Raises:
        PenstockError: TOOL-024, matplotlib could not be installed.
    """
    environment = ToolEnvironment("plots", data=_FOLDER)
    python = environment.ensure() / "python"
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run([python, _FOLDER / "bars.py", results, into], check=True, env=variables)
