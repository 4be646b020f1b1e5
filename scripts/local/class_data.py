"""Java's class data sharing for local Spark JVMs: an archive of Spark's classes as a JVM has them in memory, which it maps instead of
loading and verifying each of them.

Measured on 2 cores: the driver of a small query uses 13 s of CPU time instead of 22. An archive is made for one class path, so each
environment has its own, of some 200 MB; making it takes a minute. ``./scripts/test`` makes it, and ``python -m
penstock.scripts.local.class_data``; local runs use it where it is. A JVM to which it does not fit, of another version or with other jars,
ignores it.
"""

from __future__ import annotations

import os
import shutil
import sys
from importlib.metadata import version
from pathlib import Path

from penstock.scripts import layout
from penstock.scripts.installation import locks, tool
from penstock.scripts.installation.cache import Cache
from penstock.scripts.local.spark_home import spark_home
from penstock.scripts.progress import Steps

_ARCHIVE = "spark.jsa"
_NAME = "class-data"
_TRAINING = "penstock.scripts.local.class_data_training"
# On a busy machine it takes five minutes.
_LIMIT_S = 900


def options(cache: Cache | None = None) -> str:
    """JVM options that use the archive; empty if there is none.

    Args:
        cache: the cache; the user's by default.
    """
    archive = _folder(cache or Cache.of_user()) / _ARCHIVE
    if not archive.is_file():
        return ""
    # At the address for which it was made its pages stay those of the file: 110 MiB less for each JVM.
    shared = f'-XX:+UnlockDiagnosticVMOptions -XX:ArchiveRelocationMode=0 "-XX:SharedArchiveFile={archive}"'
    # Without a word where it does not fit.
    return f"{shared} -Xlog:cds=off -Xlog:cds+dynamic=off"


def make(steps: Steps, cache: Cache | None = None) -> bool:
    """Makes the archive if it is missing. JVMs work without it, so a failure is reported and not raised, and not repeated.

    Args:
        steps: shows progress.
        cache: the cache; the user's by default.

    Returns:
        Whether there is one.

    Raises:
        PenstockError: TOOL-015, TOOL-016, TOOL-020, the cache cannot be used or has no jars.
    """
    used = cache or Cache.of_user()
    folder = _folder(used)
    if not folder.exists():
        with used.writing(lambda said: steps.line("wait", said)) as temporary:
            if not folder.exists():
                _make(folder, temporary, used, steps)
    return (folder / _ARCHIVE).is_file()


def _make(folder: Path, temporary: Path, cache: Cache, steps: Steps) -> None:
    into, work = temporary / _NAME, temporary / f"{_NAME}-work"
    into.mkdir()
    work.mkdir()
    log = cache.logs / f"{_NAME}.log"
    environment = {**os.environ, "PYTHONPATH": layout.python_path(), "PYSPARK_PYTHON": sys.executable}
    with steps.at(_NAME, "archiving Spark's classes, so that its JVMs start faster") as step:
        class_path = os.pathsep.join(str(jar) for jar in layout.spark_jars(cache))
        command = [sys.executable, "-m", _TRAINING, str(into / _ARCHIVE), str(work), class_path]
        ended = tool.run(command, environment=environment, log=log, cwd=work, limit_s=_LIMIT_S)
        made = into / _ARCHIVE
        if ended.code != 0 or not made.is_file():
            made.unlink(missing_ok=True)
            step.said = f"no archive of Spark's classes, its JVMs start slower; see {log}, and delete {folder} to try again"
        else:
            step.said = f"an archive of Spark's classes, {made.stat().st_size / 1e6:.0f} MB"
    shutil.rmtree(work, ignore_errors=True)
    cache.put(into, folder)
    _remove_those_before(folder)


def _remove_those_before(folder: Path) -> None:
    """Archives for jars that this environment had before, also those of releases that did not tell jars apart. JVMs that run keep what they
    have mapped.
    """
    for other in folder.parent.glob(f"{folder.name.partition('-')[0]}*"):
        if other != folder:
            shutil.rmtree(other, ignore_errors=True)


def _folder(cache: Cache) -> Path:
    """By all that an archive depends on: the class path, by the keys in its folders and Spark's jars, the JVM, and the program that loads
    the classes."""
    java = _java_home()
    release = java / "release"
    known = [
        *layout.spark_jars(cache),
        spark_home(),
        version("pyspark"),
        java,
        Path(__file__).with_name("class_data_training.py").read_text(),
    ]
    of = "\n".join(map(str, known)).encode() + (release.read_bytes() if release.is_file() else b"")
    return cache.folder / _NAME / f"{locks.key(of)}-{locks.key(_times(cache).encode())}"


def _times(cache: Cache) -> str:
    """Sizes and times of the jars, which a JVM compares with those of the archive. An environment that is made again has other times."""
    jars = [*layout.spark_jars(cache), *sorted((spark_home() / "jars").glob("*.jar"))]
    return "\n".join(f"{jar.name} {stat.st_size} {stat.st_mtime_ns}" for jar in jars for stat in [jar.stat()])


def _java_home() -> Path:
    """Of the JVM that Spark's scripts start."""
    named = os.environ.get("JAVA_HOME")
    return Path(named) if named else Path(shutil.which("java") or "java").resolve().parent.parent


if __name__ == "__main__":
    make(Steps())
