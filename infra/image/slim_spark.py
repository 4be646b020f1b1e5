"""Removes from Spark's folder what no pod of a job uses: ``python slim_spark.py /opt/spark``. It runs in the image's build.

What an app may call stays, MLlib and GraphX among it. What goes needs a server, a shell or a scheduler that a pod of a job never is or
reaches, or is for another platform. A team that needs a jar of these gives it to its jobs by `spec.packages`.
"""

from __future__ import annotations

import fnmatch
import platform
import re
import shutil
import sys
import zipfile
from pathlib import Path

# Folders and files of the release: programs for a terminal, examples, their data, R, tests.
FOLDERS = ("R", "data", "examples", "sbin", "tests", "yarn", "jars/connect-repl")
# Of bin/, what spark-submit is; PySpark starts the driver's JVM by it.
KEPT_PROGRAMS = frozenset({"find-spark-home", "load-spark-env.sh", "spark-class", "spark-submit"})
# Reason -> patterns of jars.
JARS = {
    "Spark Connect's server, and the pipelines that run on it": ("spark-connect_*", "spark-pipelines_*"),
    "Spark's shell, with Scala's compiler": ("spark-repl_*", "scala-compiler-*", "jline-*"),
    "YARN": ("spark-yarn_*",),
    "the standby masters of Spark's standalone scheduler": ("curator-*", "zookeeper-*"),
    "Hive's metastore, its database and its server: a driver's session has Spark's own catalog": (
        "spark-hive_*",
        "spark-hive-thriftserver_*",
        "hive-beeline-*",
        "hive-cli-*",
        "hive-common-*",
        "hive-exec-*",
        "hive-jdbc-*",
        "hive-metastore-*",
        "hive-serde-*",
        "hive-service-rpc-*",
        "hive-shims-*",
        "datanucleus-*",
        "derby*",
        "HikariCP-*",
        "javax.jdo-*",
        "jdo-api-*",
        "libfb303-*",
        "libthrift-*",
    ),
}
# The platform's names in the paths of native libraries, as the jars have them: rocksdbjni calls x86-64 "linux64".
_NAMES = {"x86_64": ("x86_64", "amd64", "linux64"), "aarch64": ("aarch64", "aarch_64", "arm64")}
_NATIVE = re.compile(r"\.(so|dll|dylib|jnilib)$")
_SIGNATURE = re.compile(r"META-INF/[^/]+\.(SF|RSA|DSA|EC)$")


def main(folder: Path, machine: str) -> None:
    """Removes it and prints how much it was.

    Args:
        folder: Spark's.
        machine: the processor's architecture, as `platform.machine` has it.
    """
    before = _size_bytes(folder)
    for name in FOLDERS:
        shutil.rmtree(folder / name, ignore_errors=True)
    for program in (folder / "bin").iterdir():
        if program.name not in KEPT_PROGRAMS:
            program.unlink()
    for jar in sorted((folder / "jars").glob("*.jar")):
        if any(fnmatch.fnmatch(jar.name, pattern) for patterns in JARS.values() for pattern in patterns):
            jar.unlink()
        else:
            _remove_natives_of_others(jar, machine)
    _unpack_python(folder / "python")
    print(f"{folder}: {before / 1e6:.0f} MB before, {_size_bytes(folder) / 1e6:.0f} MB after")


def _remove_natives_of_others(jar: Path, machine: str) -> None:
    with zipfile.ZipFile(jar) as archive:
        entries = archive.infolist()
        kept = [entry for entry in entries if not _NATIVE.search(entry.filename) or _is_native(entry.filename, machine)]
        if len(kept) == len(entries) or any(_SIGNATURE.match(entry.filename) for entry in entries):
            return
        partial = jar.with_suffix(".partial")
        with zipfile.ZipFile(partial, "w") as smaller:
            # With its own time and compression: the same jar gives the same bytes.
            for entry in kept:
                smaller.writestr(entry, archive.read(entry))
    shutil.copymode(jar, partial)
    partial.replace(jar)


def _is_native(path: str, machine: str) -> bool:
    """Whether a native library is one of Linux with glibc on this architecture, or does not say what it is for."""
    name = path.lower()
    if "linux" not in name:
        return not re.search(r"win|mac|osx|darwin|bsd|sunos|aix", name)
    return "musl" not in name and "android" not in name and any(part in name for part in _NAMES[machine])


def _unpack_python(folder: Path) -> None:
    """Py4J becomes a folder, whose bytecode can be kept. The archive of PySpark goes: Spark puts it before the folder on Python's path, and
    no bytecode is kept of an archive.
    """
    for archive in (folder / "lib").glob("py4j-*-src.zip"):
        with zipfile.ZipFile(archive) as py4j:
            py4j.extractall(folder)
    shutil.rmtree(folder / "lib")


def _size_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


if __name__ == "__main__":
    main(Path(sys.argv[1]), platform.machine())
