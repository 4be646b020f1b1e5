"""Penstock's own classes for Spark's JVM: compiled by Maven from the sources in the package, into one jar."""

from __future__ import annotations

import hashlib
import os
import shutil
from importlib.resources import files
from pathlib import Path

from penstock.scripts.errors import JvmClassesNotBuilt
from penstock.scripts.installation import locks, tool
from penstock.scripts.installation.entry import Entry
from penstock.scripts.installation.tool import Progress

JAR = "penstock-jvm.jar"
_POM, _SOURCES, _SUM = "pom.xml", "src/main/java", "sha256"
# Not the phases of Maven's life cycle, which would also need the plugins that run tests and install artifacts.
GOALS = ("compiler:compile", "jar:jar")


class JvmClasses(Entry):
    """The jar of ``jobs/jvm``.

    Args:
        sources: the folder with the POM and the sources; the package's own by default.
    """

    def __init__(self, sources: Path | None = None) -> None:
        super().__init__(name="jvm-classes", title="Penstock's classes for Spark's JVM", tool="mvn", download_mb=100)
        self._sources = sources or Path(str(files("penstock.jobs"))) / "jvm"

    def key(self) -> str:
        """By the POM and the sources. The bytes also depend on the compiler, so a jar's own checksum lies beside it."""
        paths = [self._sources / _POM, *sorted((self._sources / _SOURCES).rglob("*.java"))]
        return locks.key(b"".join(f"{path.relative_to(self._sources)}\n".encode() + path.read_bytes() for path in paths))

    def faults(self, folder: Path) -> list[str]:
        """Whether the jar is missing, or differs from the one that was built."""
        jar, built = folder / JAR, folder / _SUM
        if not (jar.is_file() and built.is_file()):
            return [f"missing    {self.name}/{JAR}"]
        return [] if _checksum(jar) == built.read_text(encoding="utf-8", errors="replace") else [f"changed    {self.name}/{JAR}"]

    def fetch(self, into: Path, log: Path, progress: Progress) -> None:
        """Builds it.

        Raises:
            JvmClassesNotBuilt: TOOL-017.
        """
        # A copy: Maven writes beside the sources, and those of an installed package may not be writable.
        work = into.with_name(f"{into.name}-build")
        (work / _SOURCES).parent.mkdir(parents=True)
        shutil.copy(self._sources / _POM, work)
        shutil.copytree(self._sources / _SOURCES, work / _SOURCES)
        command = ["mvn", "-B", "-ntp", "-Dstyle.color=never", "-f", str(work / _POM), *GOALS]
        ended = tool.run(command, environment=os.environ, log=log, cwd=work, progress=progress)
        built = work / "target" / JAR
        if ended.code != 0 or not built.is_file():
            fix = (
                "correct the error reported by Maven (install a JDK, not only a JRE; configure a proxy or a mirror in its settings.xml), "
                "then rerun penstock setup"
            )
            given = f"code {ended.code}; the end of {log}:\n{ended.said}"
            raise JvmClassesNotBuilt(path=f"jobs/jvm/{_POM}", given=given, need=JAR, fix=fix)
        into.mkdir()
        built.replace(into / JAR)
        (into / _SUM).write_text(_checksum(into / JAR), encoding="utf-8")


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
