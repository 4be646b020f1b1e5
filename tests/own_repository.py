"""A repository that ``penstock init`` has made, in an environment that has the wheel and nothing of the checkout."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from penstock.infra.environment_file import ENVIRONMENT_VARIABLE
from penstock.scripts import layout
from penstock.scripts.installation.cache import Cache
from tests import linked_environment

# All of a run on a busy machine with two cores.
LIMIT_S = 400


# Of the tests: a session of Spark in this process sets the last one.
_OWN = ("PYTHONPATH", "VIRTUAL_ENV", ENVIRONMENT_VARIABLE, "PYSPARK_PYTHON")


class Team:
    """The repository, and its commands.

    Args:
        folder: of the repository.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(self, command: str | Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """A command in the folder; one of the environment's by its name."""
        base = {name: value for name, value in os.environ.items() if name not in _OWN}
        environment = {**base, "PENSTOCK_CACHE": str(Cache.of_user().folder), **variables}
        program = self.folder / ".venv/bin" / command
        return subprocess.run(
            [program, *words], cwd=self.folder, env=environment, capture_output=True, text=True, timeout=LIMIT_S, check=False
        )

    def succeeds(self, command: str | Path, *words: str, **variables: str) -> str:
        """Runs a command; its output and log."""
        ran = self.run(command, *words, **variables)
        assert ran.returncode == 0, ran.stdout[-6000:] + ran.stderr[-6000:]
        return ran.stdout + ran.stderr

    def cdktf(self, *words: str, environment: str) -> str:
        """Runs cdktf, as ``npm ci`` installs it; its output and log."""
        return self.succeeds(layout.cdktf(), *words, **{ENVIRONMENT_VARIABLE: environment, "CI": "1", "CHECKPOINT_DISABLE": "1"})


def create(folder: Path, wheel: Path) -> Team:
    """Makes a repository with the defaults.

    Args:
        folder: for the environment and the repository; it exists.
        wheel: Penstock's.
    """
    python = linked_environment.create(folder / "venv", ["all", "test"], wheel)
    repository = folder / "page-stats"
    command = [str(python.with_name("penstock")), "init", str(repository), "--yes"]
    made = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    assert made.returncode == 0, made.stderr
    (repository / ".venv").symlink_to(folder / "venv")
    # As `pip install --editable .` makes it importable.
    (packages,) = (folder / "venv/lib").glob("python*/site-packages")
    (packages / "page_stats.pth").write_text(f"{repository}\n")
    return Team(repository)
