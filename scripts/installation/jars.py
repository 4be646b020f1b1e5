"""Sets of jars: listed in a POM, downloaded by Maven, verified by checksums."""

from __future__ import annotations

import hashlib
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from penstock.scripts.errors import JarsDiffer, JarsNotFetched
from penstock.scripts.installation import locks, tool
from penstock.scripts.installation.entry import Entry
from penstock.scripts.installation.tool import Progress

_SUMS = "jars.sha256"
# A file manager's own file, which has nothing to do with the jars.
_PASSED_OVER = ".DS_Store"


class Jars(Entry):
    """A set of jars.

    Args:
        jar_set: its name in ``jars.sha256`` and before ``-jars.pom.xml``.
        title: for people.
        download_mb: approximate download size, in MB.
        data: the folder of the locks; the package's own by default.
    """

    def __init__(self, jar_set: str, *, title: str, download_mb: int, data: Path | None = None) -> None:
        super().__init__(name=f"jars-{jar_set}", title=title, tool="mvn", download_mb=download_mb)
        self._set = jar_set
        self._data = data or locks.folder()

    def key(self) -> str:
        """By the checksums, which alone determine the content."""
        return locks.key("".join(f"{name} {checksum}\n" for name, checksum in sorted(self._wanted().items())).encode())

    def faults(self, folder: Path) -> list[str]:
        """The jars that are missing, changed or unexpected."""
        want = self._wanted()
        have = checksums(folder)
        differences = [f"missing    {self._set}/{name}" for name in want if name not in have]
        differences += [f"changed    {self._set}/{name}" for name in want if name in have and have[name] != want[name]]
        differences += [f"unexpected {self._set}/{name}" for name in have if name not in want]
        return sorted(differences)

    def fetch(self, into: Path, log: Path, progress: Progress) -> None:
        """Fetches them.

        Raises:
            JarsNotFetched: TOOL-011.
            JarsDiffer: TOOL-012.
        """
        pom = self._data / f"{self._set}-jars.pom.xml"
        # -ntp: a line per jar, none per kilobyte.
        goal = ("dependency:copy-dependencies", f"-DoutputDirectory={into}")
        command = ["mvn", "-B", "-ntp", "-Dstyle.color=never", "-f", str(pom), *goal]
        ended = tool.run(command, environment=os.environ, log=log, cwd=into.parent, progress=progress)
        if ended.code != 0:
            fix = "correct the error reported by Maven (configure a proxy or a mirror in Maven's settings.xml), then rerun penstock setup"
            given = f"code {ended.code}; the end of {log}:\n{ended.said}"
            raise JarsNotFetched(path=pom.name, given=given, need="all jars listed in it", fix=fix)
        if faults := self.faults(into):
            fix = "remove the changed jars from Maven's local repository and rerun penstock setup; a changed POM needs new checksums"
            need = "exactly the jars listed in jars.sha256, with matching checksums"
            given = "\n".join(["", *(f"    | {fault}" for fault in faults)])
            raise JarsDiffer(path=f"{_SUMS}  {self._set}", given=given, need=need, fix=fix)

    def _wanted(self) -> dict[str, str]:
        """Name -> SHA-256."""
        lines = (self._data / _SUMS).read_text(encoding="utf-8").splitlines()
        rows = [line.split("  ", 1) for line in lines]
        return {name.removeprefix(f"{self._set}/"): checksum for checksum, name in rows if name.startswith(f"{self._set}/")}


def checksums(folder: Path) -> dict[str, str]:
    """Name -> SHA-256 of the files in a folder; empty if it does not exist.

    Args:
        folder: with jars.
    """
    paths = [path for path in folder.rglob("*") if path.is_file() and path.name != _PASSED_OVER]
    # hashlib releases the GIL while it works.
    with ThreadPoolExecutor(4) as pool:
        return {str(path.relative_to(folder)): checksum for path, checksum in zip(paths, pool.map(_checksum, paths), strict=True)}


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
