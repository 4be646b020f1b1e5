"""The files of the commit that a change is compared with, in a folder."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path

from penstock.scripts.errors import MissingTool
from penstock.scripts.review.errors import NoRepository, UnknownCommit


@dataclass(frozen=True)
class BaseTree:
    """The files of a commit.

    Args:
        commit: its id.
        root: of the repository.
        folder: with its files.
    """

    commit: str
    root: Path
    folder: Path

    def before(self, path: Path) -> Path:
        """Where a file or a folder was in that commit; one outside of the repository is the same."""
        there = path.resolve()
        return self.folder / there.relative_to(self.root) if there.is_relative_to(self.root) else there


def written(base: str, folder: Path) -> BaseTree:
    """Writes the files of the commit that a change has in common with a branch.

    Args:
        base: name of the branch, or any commit. What it has had since is not compared: it is no part of the change.
        folder: an empty folder.

    Raises:
        MissingTool: TOOL-001, Git is not installed.
        NoRepository: REV-001.
        UnknownCommit: REV-002.
    """
    root = Path(_root()).resolve()
    commit = _common(base, root)
    with tarfile.open(fileobj=io.BytesIO(_git("archive", "--format=tar", commit, at=root).stdout)) as archive:
        archive.extractall(folder, filter=_within)
    return BaseTree(commit, root, folder)


def _within(member: tarfile.TarInfo, folder: str) -> tarfile.TarInfo | None:
    """Leaves out links that lead out of the repository: nothing is planned with them."""
    try:
        return tarfile.data_filter(member, folder)
    except tarfile.FilterError:
        return None


def _root() -> str:
    found = _git("rev-parse", "--show-toplevel", at=Path.cwd())
    if found.returncode != 0:
        need = "a folder of a Git repository"
        raise NoRepository(path=str(Path.cwd()), given=_said(found), need=need, fix="run it in a checkout")
    return os.fsdecode(found.stdout).rstrip("\n")


def _common(base: str, root: Path) -> str:
    named = _git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{base}^{{commit}}", at=root)
    common = _git("merge-base", "HEAD", os.fsdecode(named.stdout).strip(), at=root) if named.returncode == 0 else named
    if common.returncode != 0:
        need = "a branch, a tag or a commit that has a commit in common with HEAD"
        fix = "git fetch origin BASE; in CI with the whole history: fetch-depth: 0"
        raise UnknownCommit(path="BASE", given=base, need=need, fix=fix)
    return os.fsdecode(common.stdout).strip()


def _git(*words: str, at: Path) -> subprocess.CompletedProcess[bytes]:
    if shutil.which("git") is None:
        raise MissingTool(path="git", need="Git", fix="install it: https://git-scm.com/downloads")
    return subprocess.run(["git", *words], cwd=at, capture_output=True, check=False)


def _said(ran: subprocess.CompletedProcess[bytes]) -> str:
    return ran.stderr.decode(errors="replace").strip().partition("\n")[0]
