"""A team's repository with one commit, which a test changes."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from penstock.scripts.cli.command import main

_IDENTITY = ("-c", "user.name=tests", "-c", "user.email=tests@example.org")


class Repository:
    """A repository that ``penstock init`` has made, committed to ``main``.

    Args:
        folder: of the repository, which does not exist.
    """

    def __init__(self, folder: Path) -> None:
        assert main(["init", str(folder), "--yes"]) == 0
        self.folder = folder
        self.spec = folder / "specs/page_views.yaml"
        self.app = folder / "page_stats/page_views.py"
        self.environment = folder / "environments/production.yaml"
        self.git("init", "--quiet", "--initial-branch", "main")
        self.commit("as init has made it")

    def git(self, *words: str) -> str:
        """What Git prints."""
        return subprocess.run(["git", *_IDENTITY, *words], cwd=self.folder, check=True, capture_output=True, text=True).stdout.strip()

    def commit(self, message: str) -> str:
        """Commits all files; the id."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message)
        return self.git("rev-parse", "HEAD")

    def edit(self, file: Path, old: str, new: str) -> None:
        """Replaces a text that is in the file once."""
        text = file.read_text("utf-8")
        assert text.count(old) == 1
        file.write_text(text.replace(old, new), "utf-8")


class Reviewed(NamedTuple):
    """What ``penstock review`` has ended with."""

    code: int
    output: str
    errors: str

    @property
    def document(self) -> dict[str, Any]:
        """Of ``-o json``."""
        found: dict[str, Any] = json.loads(self.output)
        return found

    def job(self, name: str = "page-views") -> dict[str, Any]:
        """A job of the document."""
        (found,) = (job for job in self.document["jobs"] if job["job"] == name)
        return dict(found)


def review(capsys: pytest.CaptureFixture[str], *words: str) -> Reviewed:
    """Runs the command in the current folder."""
    capsys.readouterr()
    code = main(["review", *words])
    printed = capsys.readouterr()
    return Reviewed(code, printed.out, printed.err)
