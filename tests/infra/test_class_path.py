"""The class path that the image's build gives Spark, on small folders, and which JVMs map an archive of its classes."""

from __future__ import annotations

import os
import runpy
import shutil
import subprocess
import sys
import zipfile
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest

from penstock.infra.manifests.client_mode_conf import CLASS_DATA, CLASS_DATA_OPTIONS
from penstock.scripts.layout import ROOT

PROGRAM = ROOT / "infra/image/class_path.py"
SPARK = Path(str(distribution("pyspark").locate_file("pyspark")))
# Of Spark's launcher, and small: without arguments it says so and ends.
MAIN = "org.apache.spark.launcher.Main"


@pytest.fixture(scope="module")
def program() -> dict[str, Any]:
    return runpy.run_path(str(PROGRAM))


def jar(file: Path, **entries: str) -> None:
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in entries.items():
            archive.writestr(name, content)


@pytest.fixture
def spark(tmp_path: Path) -> Path:
    """Spark's folder with its launcher and some other jars, after the build's step."""
    folder = tmp_path / "spark"
    shutil.copytree(SPARK / "bin", folder / "bin")
    (folder / "jars").mkdir()
    shutil.copy(next((SPARK / "jars").glob("spark-launcher_*.jar")), folder / "jars")
    for name in ("zstd-jni-1", "slf4j-api-2", "a-name-that-is-longer-than-a-line-of-a-manifest-may-be-" + 80 * "x"):
        jar(folder / f"jars/{name}.jar", **{f"{name}.txt": name})
    (tmp_path / "log4j2.properties").write_text("rootLogger.level = warn\n")
    command = [sys.executable, str(PROGRAM), str(folder / "jars"), str(tmp_path / "log4j2.properties"), "own.jar"]
    subprocess.run(command, check=True, timeout=60)
    jar(folder / "jars/lib/own.jar", **{"own.txt": "own"})
    return folder


def java(*words: str, environment: dict[str, str] | None = None) -> str:
    """What a JVM says; none of the commands succeeds, because the launcher is asked for nothing."""
    if shutil.which("java") is None:
        pytest.skip("no java in PATH")
    given = {"PATH": os.environ["PATH"], **{name: os.environ[name] for name in ("JAVA_HOME",) if name in os.environ}}
    ran = subprocess.run(words, env={**given, **(environment or {})}, capture_output=True, text=True, timeout=120, check=False)
    assert "missing class name" in ran.stderr, ran.stderr
    return ran.stdout + ran.stderr


@pytest.fixture
def archive(spark: Path) -> Path:
    """An archive of what the launcher loads, of a driver's class path."""
    file = spark / "class-data.jsa"
    java("java", f"-XX:ArchiveClassesAtExit={file}", "-cp", f"{spark}/conf/:{spark}/jars/*", MAIN)
    assert file.is_file()
    return file


def options(archive: Path) -> list[str]:
    """Those of a deployment."""
    return CLASS_DATA_OPTIONS.replace(CLASS_DATA, str(archive)).split()


def maps(archive: Path, class_path: str) -> bool:
    said = java("java", *options(archive), "-Xlog:class+load", "-cp", class_path, MAIN)
    return f"{MAIN} source: shared objects file (top)" in said


def test_one_jar_lists_all_of_them_in_one_order(program: dict[str, Any], spark: Path) -> None:
    (listing,) = (spark / "jars").glob("*.jar")
    with zipfile.ZipFile(listing) as archive:
        lines = archive.read("META-INF/MANIFEST.MF").decode("ascii").split("\r\n")
        assert archive.read("log4j2.properties") == b"rootLogger.level = warn\n"
    assert lines[0] == "Manifest-Version: 1.0" and lines[-2:] == ["", ""]
    assert max(map(len, lines)) <= 70
    names = "".join(line.removeprefix(" ") for line in lines[1:]).removeprefix("Class-Path: ").split(" ")
    assert names[0] == "lib/slf4j-api-2.jar"
    assert names[1:] == sorted(names[1:])
    assert set(names) == {f"lib/{file.name}" for file in (spark / "jars/lib").iterdir()}


def test_the_same_jars_give_the_same_bytes_and_times(program: dict[str, Any], spark: Path, tmp_path: Path) -> None:
    again = tmp_path / "again"
    again.mkdir()
    for file in (spark / "jars/lib").iterdir():
        if file.name != "own.jar":
            shutil.copyfile(file, again / file.name)
    program["main"](again, tmp_path / "log4j2.properties", ["own.jar"])
    listing = program["NAME"]
    assert (again / listing).read_bytes() == (spark / "jars" / listing).read_bytes()
    # A layer has whole seconds, and a JVM compares them with those that the archive notes.
    assert {file.stat().st_mtime for file in again.rglob("*.jar")} == {program["TIME_S"]}


@pytest.mark.parametrize(
    "class_path",
    [
        # A driver's, of SparkSubmitCommandBuilder.
        "{spark}/conf/:{spark}/jars/*",
        # An executor's, of the official entry point: without extra class path, and with Hadoop's distribution empty.
        "{spark}/conf::{spark}/jars/*:{work}:",
        # Of the entry point of assembled bases.
        "{spark}/conf:{spark}/jars/*:{work}",
    ],
)
def test_the_class_paths_of_driver_and_executor_map_one_archive(spark: Path, archive: Path, tmp_path: Path, class_path: str) -> None:
    assert maps(archive, class_path.format(spark=spark, work=tmp_path))


def test_what_sparks_own_launcher_starts_maps_it(spark: Path, archive: Path, tmp_path: Path) -> None:
    logged = f"-Xlog:class+load:file={tmp_path}/loaded-%p.log"
    environment = {"SPARK_HOME": str(spark), "JDK_JAVA_OPTIONS": " ".join([*options(archive), logged])}
    java(str(spark / "bin/spark-class"), MAIN, environment=environment)
    logs = [file.read_text() for file in tmp_path.glob("loaded-*.log")]
    # The launcher's own JVM, without the configuration's folder on its class path, and the one that it starts.
    assert [f"{MAIN} source: shared objects file (top)" in log for log in logs] == [True, True]


def test_a_jar_more_or_another_one_is_seen(spark: Path, archive: Path, tmp_path: Path) -> None:
    jar(tmp_path / "first.jar", **{"any.txt": ""})
    assert not maps(archive, f"{tmp_path}/first.jar:{spark}/jars/*")
    assert maps(archive, f"{spark}/jars/*:{tmp_path}/first.jar")
    jar(spark / "jars/lib/own.jar", **{"another.txt": ""})
    assert not maps(archive, f"{spark}/jars/*")


def test_a_jvm_that_it_does_not_fit_runs_without_a_word(spark: Path, archive: Path, tmp_path: Path) -> None:
    """As with a log configuration of one's own, mounted at Spark's `conf`."""
    (spark / "conf").mkdir()
    (spark / "conf/log4j2.properties").write_text("rootLogger.level = info\n")
    class_path = f"{spark}/conf/:{spark}/jars/*"
    assert not maps(archive, class_path)
    plain = java("java", "-cp", class_path, MAIN)
    assert java("java", *options(archive), "-cp", class_path, MAIN) == plain
    assert java("java", *options(tmp_path / "none.jsa"), "-cp", class_path, MAIN) == plain
