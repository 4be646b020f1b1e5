"""What the image's build removes from Spark, on PySpark's own distribution and on small jars."""

from __future__ import annotations

import fnmatch
import runpy
import shutil
import subprocess
import sys
import zipfile
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest

from penstock.scripts.layout import ROOT

PROGRAM = ROOT / "infra/image/slim_spark.py"
SPARK = Path(str(distribution("pyspark").locate_file("pyspark")))
NATIVES = (
    "librocksdbjni-linux64.so",
    "librocksdbjni-linux64-musl.so",
    "librocksdbjni-linux-aarch64.so",
    "librocksdbjni-osx-arm64.jnilib",
    "librocksdbjni-win64.dll",
    "linux/amd64/libzstd-jni.so",
    "linux/aarch64/libzstd-jni.so",
    "linux/i386/libzstd-jni.so",
    "org/xerial/snappy/native/Linux/android-aarch64/libsnappyjava.so",
    "org/xerial/snappy/native/Mac/x86_64/libsnappyjava.dylib",
    "libother.so",
)


@pytest.fixture(scope="module")
def program() -> dict[str, Any]:
    return runpy.run_path(str(PROGRAM))


def jar(file: Path, *names: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("META-INF/MANIFEST.MF", "org/Main.class", *names):
            archive.writestr(zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0)), name * 100)
    return file


def names(file: Path) -> set[str]:
    with zipfile.ZipFile(file) as archive:
        assert archive.testzip() is None
        return set(archive.namelist())


@pytest.fixture
def spark(tmp_path: Path) -> Path:
    """A small folder laid out as Spark's."""
    for name in ("bin/spark-submit", "bin/beeline", "sbin/start-history-server.sh", "R/lib/any", "LICENSE", "python/pyspark/any.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    (tmp_path / "python/lib").mkdir()
    shutil.copy(next((SPARK / "python/lib").glob("py4j-*-src.zip")), tmp_path / "python/lib")
    (tmp_path / "python/lib/pyspark.zip").write_text("")
    for name in ("spark-core_2.13-4.3.0", "spark-mllib_2.13-4.3.0", "spark-hive_2.13-4.3.0", "hive-storage-api-2.8.1"):
        jar(tmp_path / f"jars/{name}.jar")
    return tmp_path


def test_what_no_pod_uses_is_removed_and_what_an_app_may_call_stays(spark: Path) -> None:
    subprocess.run([sys.executable, str(PROGRAM), str(spark)], check=True, timeout=60)
    left = {str(path.relative_to(spark)) for path in spark.rglob("*") if path.is_file() and path.parent.name != "py4j"}
    jars = {f"jars/{name}.jar" for name in ("spark-core_2.13-4.3.0", "spark-mllib_2.13-4.3.0", "hive-storage-api-2.8.1")}
    assert left == {"bin/spark-submit", "LICENSE", "python/pyspark/any.py", *jars}
    command = [sys.executable, "-c", "import py4j; print(py4j.__file__)"]
    found = subprocess.run(
        command, env={"PYTHONPATH": str(spark / "python")}, capture_output=True, text=True, check=True, timeout=60
    ).stdout
    assert found.strip() == str(spark / "python/py4j/__init__.py")


@pytest.mark.parametrize(
    ("machine", "kept"),
    [
        ("x86_64", {"librocksdbjni-linux64.so", "linux/amd64/libzstd-jni.so", "libother.so"}),
        ("aarch64", {"librocksdbjni-linux-aarch64.so", "linux/aarch64/libzstd-jni.so", "libother.so"}),
    ],
)
def test_native_libraries_of_other_platforms_are_removed(program: dict[str, Any], spark: Path, machine: str, kept: set[str]) -> None:
    file = jar(spark / "jars/natives-1.jar", *NATIVES)
    program["main"](spark, machine)
    assert names(file) == {"META-INF/MANIFEST.MF", "org/Main.class", *kept}


def test_the_same_jar_gives_the_same_bytes(program: dict[str, Any], spark: Path) -> None:
    one, other = (jar(spark / f"jars/natives-{number}.jar", *NATIVES) for number in (1, 2))
    program["main"](spark, "x86_64")
    assert one.read_bytes() == other.read_bytes()


def test_a_signed_jar_stays_as_it_is(program: dict[str, Any], spark: Path) -> None:
    file = jar(spark / "jars/signed-1.jar", "META-INF/ANY.SF", *NATIVES)
    before = file.read_bytes()
    program["main"](spark, "x86_64")
    assert file.read_bytes() == before


def test_each_jar_that_is_named_is_one_of_sparks(program: dict[str, Any]) -> None:
    """A name that a new version of Spark has changed would stay in the image unnoticed."""
    jars = {path.name for path in (SPARK / "jars").glob("*.jar")}
    patterns = [pattern for patterns in program["JARS"].values() for pattern in patterns]
    assert not [pattern for pattern in patterns if not fnmatch.filter(jars, pattern)]


def test_the_natives_of_this_platform_are_kept_in_every_jar_of_sparks(program: dict[str, Any]) -> None:
    """RocksDB, Zstandard, LZ4 and Snappy load theirs from their jars."""
    for name in ("rocksdbjni", "zstd-jni", "lz4-java", "snappy-java"):
        (file,) = (SPARK / "jars").glob(f"{name}-[0-9]*.jar")
        found = [entry for entry in names(file) if program["_NATIVE"].search(entry)]
        for machine in ("x86_64", "aarch64"):
            kept = [entry for entry in found if program["_is_native"](entry, machine)]
            assert len(kept) == 1, (name, machine, kept)
