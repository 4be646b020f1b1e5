"""cdktf-cli: installed by npm from its lock file, and started once to verify that it runs."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

from penstock.scripts.errors import CdktfNotInstalled
from penstock.scripts.installation import locks, tool
from penstock.scripts.installation.entry import Entry
from penstock.scripts.installation.tool import Progress

_LOCK, _PACKAGE = "package-lock.json", "package.json"
_FLAGS = ("--ignore-scripts", "--no-audit", "--no-fund")


class CdktfCli(Entry):
    """cdktf-cli with its dependencies.

    Args:
        data: the folder of the locks; the package's own by default.
    """

    def __init__(self, data: Path | None = None) -> None:
        super().__init__(name="cdktf", title="cdktf-cli", tool="npm", download_mb=145)
        self._data = (data or locks.folder()) / "node"

    @staticmethod
    def command(folder: Path) -> Path:
        """The ``cdktf`` command of an entry."""
        return folder / "node_modules" / ".bin" / "cdktf"

    def key(self) -> str:
        """By the lock file."""
        return locks.key((self._data / _LOCK).read_bytes())

    def faults(self, folder: Path) -> list[str]:
        """Whether it is missing: npm verifies the hashes when it installs."""
        return [] if os.access(self.command(folder), os.X_OK) else ["missing    cdktf"]

    def fetch(self, into: Path, log: Path, progress: Progress) -> None:
        """Installs it.

        Raises:
            CdktfNotInstalled: TOOL-013.
        """
        into.mkdir(parents=True)
        for name in (_PACKAGE, _LOCK):
            shutil.copy(self._data / name, into / name)
        need, again = "all packages of the lock file, with matching hashes", "then rerun penstock setup"
        ended = tool.run(["npm", "ci", *_FLAGS], environment=_quiet(), log=log, cwd=into, progress=progress)
        if ended.code != 0:
            fix = f"correct the error reported by npm (without direct network access, configure a proxy or a registry in .npmrc), {again}"
            raise CdktfNotInstalled(path=_LOCK, given=f"code {ended.code}; the end of {log}:\n{ended.said}", need=need, fix=fix)
        wanted: str = json.loads((into / _PACKAGE).read_text(encoding="utf-8"))["dependencies"]["cdktf-cli"]
        version = log.with_name("cdktf-version.log")
        started = tool.run([self.command(into), "--version"], environment=_quiet(), log=version, cwd=into)
        # It also checks Terraform's settings, which do not matter here.
        if wanted not in version.read_text("utf-8", "replace").splitlines():
            raise CdktfNotInstalled(
                path="cdktf --version", given=started.said, need=f"the output {wanted}", fix=f"correct the reported error, {again}"
            )


def _quiet() -> dict[str, str]:
    return {**os.environ, "CHECKPOINT_DISABLE": "1", "CI": "1"}
