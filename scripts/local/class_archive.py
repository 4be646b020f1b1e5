"""Java's class data sharing for JVMs on this machine: an archive of a program's classes as a JVM has them in memory, which others map
instead of loading and verifying each class.

An archive fits one JVM and one class path. One to which it does not fit, of another version or with other jars, ignores it.
"""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from penstock.scripts import layout
from penstock.scripts.installation import locks, tool
from penstock.scripts.installation.cache import VARIABLE, Cache
from penstock.scripts.progress import Steps

_NAME = "class-data"
# On a busy machine Spark's takes five minutes.
_LIMIT_S = 900


@dataclass(frozen=True)
class ClassArchive:
    """The archive of a program's classes in the cache.

    Args:
        cache: the cache.
        program: the program's name, such as ``Spark``.
        class_path: the jars that its training is given.
        jars: all jars that its JVMs have.
        known: what else its classes depend on.
        training: the module that makes it, as ``python -m MODULE FILE FOLDER CLASS_PATH``.
    """

    cache: Cache
    program: str
    class_path: tuple[Path, ...]
    jars: tuple[Path, ...]
    known: tuple[str, ...]
    training: str

    @property
    def folder(self) -> Path:
        """By all that an archive depends on: the class path, by the keys in its folders, the JVM, and the training."""
        java = _java_home()
        release = java / "release"
        of = "\n".join(map(str, (*self.class_path, *self.known, java, self._training_source()))).encode()
        jvm = release.read_bytes() if release.is_file() else b""
        return self.cache.folder / _NAME / f"{locks.key(of + jvm)}-{locks.key(self._times().encode())}"

    @property
    def file(self) -> Path:
        """The archive; missing until it is made."""
        return self.folder / self._name

    def options(self) -> tuple[str, ...]:
        """The JVM options that use the archive; none if there is none."""
        archive = self.file
        if not archive.is_file():
            return ()
        # At the address for which it was made its pages stay those of the file: Spark's is 110 MiB less for each JVM.
        shared = ("-XX:+UnlockDiagnosticVMOptions", "-XX:ArchiveRelocationMode=0", f"-XX:SharedArchiveFile={archive}")
        # Without a word where it does not fit.
        return (*shared, "-Xlog:cds=off", "-Xlog:cds+dynamic=off")

    def make(self, steps: Steps) -> bool:
        """Makes the archive if it is missing. JVMs work without it, so a failure is reported and not raised, and not repeated.

        Args:
            steps: shows progress.

        Returns:
            Whether there is one.

        Raises:
            PenstockError: TOOL-015, TOOL-016, the cache cannot be used.
        """
        folder = self.folder
        if not folder.exists():
            with self.cache.writing(lambda said: steps.line("wait", said)) as temporary:
                # Another process may have made it meanwhile.
                if not folder.exists():
                    self._make(folder, temporary, steps)
        return self.file.is_file()

    def _make(self, folder: Path, temporary: Path, steps: Steps) -> None:
        into, work = temporary / _NAME, temporary / f"{_NAME}-work"
        into.mkdir()
        work.mkdir()
        log = self.cache.logs / f"{_NAME}.log"
        own = {"PYTHONPATH": layout.python_path(), "PYSPARK_PYTHON": sys.executable, VARIABLE: str(self.cache.folder)}
        with steps.at(_NAME, f"archiving {self.program}'s classes, so that its JVMs start faster") as step:
            made = into / self._name
            command = [sys.executable, "-m", self.training, str(made), str(work), os.pathsep.join(map(str, self.class_path))]
            ended = tool.run(command, environment={**os.environ, **own}, log=log, cwd=work, limit_s=_LIMIT_S)
            if ended.code != 0 or not made.is_file():
                made.unlink(missing_ok=True)
                step.said = f"no archive of {self.program}'s classes, its JVMs start slower; see {log}, and delete {folder} to try again"
            else:
                step.said = f"an archive of {self.program}'s classes, {made.stat().st_size / 1e6:.0f} MB"
        shutil.rmtree(work, ignore_errors=True)
        self.cache.put(into, folder)
        _remove_those_before(folder)

    @property
    def _name(self) -> str:
        return f"{self.program.lower()}.jsa"

    def _training_source(self) -> str:
        source = Path(__file__).with_name(f"{self.training.rpartition('.')[2]}.py")
        return source.read_text(encoding="utf-8") if source.is_file() else ""

    def _times(self) -> str:
        """Sizes and times of the jars, which a JVM compares with the archive's. An environment that is made again has other times."""
        return "\n".join(f"{jar.name} {stat.st_size} {stat.st_mtime_ns}" for jar in self.jars for stat in [jar.stat()])


def _remove_those_before(folder: Path) -> None:
    """Archives for jars that this environment had before, also those of releases that did not tell jars apart. JVMs that run keep what they
    have mapped.
    """
    for other in folder.parent.glob(f"{folder.name.partition('-')[0]}*"):
        if other != folder:
            shutil.rmtree(other, ignore_errors=True)


def _java_home() -> Path:
    """Of the JVM that scripts start."""
    named = os.environ.get("JAVA_HOME")
    return Path(named) if named else Path(shutil.which("java") or "java").resolve().parent.parent
