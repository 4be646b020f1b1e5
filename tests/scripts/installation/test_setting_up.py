"""What is fetched into the user's cache: by the real code, with a Maven and an npm that the test makes."""

from __future__ import annotations

import contextlib
import hashlib
import io
import multiprocessing
import os
import shutil
import stat
import sys
from pathlib import Path

import pytest
from rich.console import Console

from penstock.scripts.errors import (
    CacheNotWritable,
    CacheOfAnotherVersion,
    CdktfNotInstalled,
    JarsDiffer,
    JarsNotFetched,
    JvmClassesNotBuilt,
)
from penstock.scripts.installation import setting_up
from penstock.scripts.installation.cache import Cache
from penstock.scripts.installation.cdktf_cli import CdktfCli
from penstock.scripts.installation.entry import Entry
from penstock.scripts.installation.jvm_classes import JvmClasses
from penstock.scripts.progress import Steps

MAVEN = """
for argument; do
    case $argument in
    -DoutputDirectory=*) to=${argument#*=} ;;
    *-jars.pom.xml) set=${argument##*/} set=${set%-jars.pom.xml} ;;
    jar:jar) mkdir target && cat src/main/java/*.java >target/penstock-jvm.jar; exit ;;
    esac
done
mkdir -p "$to" && cp "$FAKES/repository/$set/"* "$to"
"""
NPM = """
mkdir -p node_modules/.bin
printf '#!/bin/sh\\necho Warning: no settings >&2\\necho 0.21.0\\n' >node_modules/.bin/cdktf
chmod +x node_modules/.bin/cdktf
"""
JARS = ("spark/a.jar", "spark/b.jar", "kafka/c.jar")


class Machine:
    """Tools, locks and a cache."""

    def __init__(self, folder: Path) -> None:
        self.fakes = folder / "fakes"
        self.data = folder / "data"
        self.cache = Cache(folder / "cache")
        self.said = io.StringIO()
        (self.fakes / "bin").mkdir(parents=True)
        (self.data / "node").mkdir(parents=True)
        self.sources = folder / "jvm"
        (self.sources / "src/main/java").mkdir(parents=True)
        (self.sources / "pom.xml").write_text("<project/>")
        (self.sources / "src/main/java/A.java").write_text("class A {}")
        sums = []
        for jar in JARS:
            path = self.fakes / "repository" / jar
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(jar)
            sums.append(f"{hashlib.sha256(jar.encode()).hexdigest()}  {jar}\n")
        (self.data / "jars.sha256").write_text("".join(sums))
        (self.data / "node" / "package-lock.json").write_text("{}")
        (self.data / "node" / "package.json").write_text('{"dependencies": {"cdktf-cli": "0.21.0"}}')
        self.tool("mvn", MAVEN)
        self.tool("npm", NPM)

    def tool(self, name: str, body: str) -> None:
        path = self.fakes / "bin" / name
        path.write_text(f'#!/bin/sh\necho "{name} $*" >>"$FAKES/calls"\n{body}\n')
        path.chmod(0o755)

    def entries(self) -> list[Entry]:
        return setting_up.entries(self.data, self.sources)

    def due(self) -> list[str]:
        return [entry.name for entry in setting_up.due(self.cache, self.entries())]

    def fetch(self) -> None:
        setting_up.fetch(self.cache, self.entries(), Steps(Console(file=self.said, width=200)))

    def calls(self, tool: str) -> int:
        calls = self.fakes / "calls"
        return sum(line.startswith(tool) for line in calls.read_text().splitlines()) if calls.exists() else 0


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine(tmp_path)
    monkeypatch.setenv("PATH", f"{made.fakes / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("FAKES", str(made.fakes))
    return made


def test_everything_is_fetched_once_and_said_with_its_size_and_place(machine: Machine) -> None:
    assert machine.due() == ["jars-spark", "jars-kafka", "jvm-classes", "cdktf"]
    machine.fetch()
    assert machine.due() == []
    spark = setting_up.spark_jars(machine.data).folder(machine.cache)
    assert sorted(path.name for path in spark.iterdir()) == ["a.jar", "b.jar"]
    assert f"up to 22 MB to download, into {spark}" in machine.said.getvalue()
    machine.fetch()
    assert (machine.calls("mvn"), machine.calls("npm")) == (3, 1)
    assert not list(machine.cache.folder.glob("tmp/*"))


def test_a_changed_lock_has_an_entry_of_its_own_beside_the_old_one(machine: Machine) -> None:
    machine.fetch()
    (machine.data / "node" / "package-lock.json").write_text('{"changed": true}')
    assert machine.due() == ["cdktf"]
    machine.fetch()
    assert len(list((machine.cache.folder / "cdktf").iterdir())) == 2
    assert machine.calls("mvn") == 3


def test_a_changed_a_missing_and_an_unexpected_jar_are_found_and_fetched_again(machine: Machine) -> None:
    machine.fetch()
    jars = setting_up.spark_jars(machine.data)
    folder = jars.folder(machine.cache)
    (folder / "a.jar").write_text("spark/A.jar")
    (folder / "b.jar").rename(folder / "z.jar")
    assert jars.faults(folder) == ["changed    spark/a.jar", "missing    spark/b.jar", "unexpected spark/z.jar"]
    machine.fetch()
    assert sorted(path.name for path in folder.iterdir()) == ["a.jar", "b.jar"]
    assert jars.faults(folder) == []


def test_a_broken_download_does_not_come_into_place(machine: Machine) -> None:
    (machine.fakes / "repository" / "spark" / "a.jar").write_text("another")
    (machine.fakes / "repository" / "spark" / "new.jar").write_text("new")
    with pytest.raises(JarsDiffer) as raised:
        machine.fetch()
    assert (raised.value.code, raised.value.exit_code) == ("TOOL-012", 4)
    assert raised.value.given == "\n    | changed    spark/a.jar\n    | unexpected spark/new.jar"
    assert not setting_up.spark_jars(machine.data).folder(machine.cache).exists()
    assert not list(machine.cache.folder.glob("tmp/*"))


@pytest.mark.parametrize(("tool", "error"), [("mvn", JarsNotFetched), ("npm", CdktfNotInstalled)], ids=["maven", "npm"])
def test_a_tool_that_fails_is_an_error_with_what_it_said_and_what_came_before_stays(
    machine: Machine, tool: str, error: type[JarsNotFetched] | type[CdktfNotInstalled]
) -> None:
    machine.tool(tool, "echo no route to host >&2; exit 3")
    with pytest.raises(error) as raised:
        machine.fetch()
    assert raised.value.exit_code == 4
    assert "code 3; the end of " in raised.value.given
    assert "no route to host" in raised.value.given
    assert machine.due() == (["cdktf"] if tool == "npm" else ["jars-spark", "jars-kafka", "jvm-classes", "cdktf"])
    machine.tool(tool, NPM if tool == "npm" else MAVEN)
    machine.fetch()
    assert machine.due() == []


def test_a_cdktf_that_says_another_version_is_not_taken(machine: Machine) -> None:
    machine.tool("npm", NPM.replace("0.21.0", "0.20.0"))
    with pytest.raises(CdktfNotInstalled):
        machine.fetch()
    assert not CdktfCli(machine.data).folder(machine.cache).exists()


@pytest.mark.parametrize("layout", ["2", "", "0", "\N{SNOWMAN}"])
def test_a_cache_of_another_version_is_left_alone(machine: Machine, layout: str) -> None:
    machine.cache.folder.mkdir()
    (machine.cache.folder / "layout").write_text(layout)
    with pytest.raises(CacheOfAnotherVersion) as raised:
        machine.due()
    assert (raised.value.code, raised.value.exit_code) == ("TOOL-016", 4)
    assert "PENSTOCK_CACHE" in raised.value.fix
    with pytest.raises(CacheOfAnotherVersion):
        machine.fetch()
    assert (machine.cache.folder / "layout").read_text() == layout
    assert not list(machine.cache.folder.glob("jars-*"))


def test_a_cache_that_is_a_file_is_an_error_that_names_the_variable(machine: Machine) -> None:
    machine.cache.folder.write_text("")
    with pytest.raises(CacheNotWritable) as raised:
        machine.fetch()
    assert (raised.value.code, raised.value.exit_code) == ("TOOL-015", 4)
    assert raised.value.given == f"Not a directory: {machine.cache.logs}"
    assert "PENSTOCK_CACHE" in raised.value.fix


def _fetch_without_privileges(machine: Machine) -> None:
    if os.geteuid() == 0:
        # Root may write anywhere: the account `nobody` may not.
        os.seteuid(65534)
    try:
        machine.fetch()
    except CacheNotWritable as error:
        sys.exit(error.exit_code)


def test_a_cache_without_write_access_is_an_error(machine: Machine) -> None:
    machine.cache.folder.mkdir(mode=stat.S_IRUSR | stat.S_IXUSR)
    process = multiprocessing.get_context("fork").Process(target=_fetch_without_privileges, args=(machine,))
    process.start()
    process.join(60)
    assert process.exitcode == CacheNotWritable.exit_code


def _fetch(machine: Machine) -> None:
    machine.fetch()


def test_two_set_ups_at_once_fetch_once(machine: Machine) -> None:
    context = multiprocessing.get_context("fork")
    both = [context.Process(target=_fetch, args=(machine,)) for _ in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join(60)
        assert one.exitcode == 0
    assert (machine.calls("mvn"), machine.calls("npm")) == (3, 1)


def test_what_a_killed_set_up_left_is_removed(machine: Machine) -> None:
    left = machine.cache.folder / "tmp" / "jars-spark"
    left.mkdir(parents=True)
    (left / "half.jar").touch()
    machine.fetch()
    assert machine.due() == []
    assert not left.exists()


def test_a_reader_that_has_gone_is_no_fault_of_the_cache(machine: Machine) -> None:
    with pytest.raises(BrokenPipeError), machine.cache.writing():
        raise BrokenPipeError


def test_the_cache_is_where_the_variable_says_else_where_the_system_keeps_caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Cache.of_user({"PENSTOCK_CACHE": str(tmp_path)}).folder == tmp_path
    assert Cache.of_user({"PENSTOCK_CACHE": "~/x"}).folder == Path.home() / "x"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    with contextlib.suppress(KeyError):
        monkeypatch.delenv("PENSTOCK_CACHE")
    if os.uname().sysname == "Linux":
        assert Cache.of_user().folder == tmp_path / "xdg" / "penstock"


def test_a_removed_entry_is_fetched_again(machine: Machine) -> None:
    machine.fetch()
    shutil.rmtree(CdktfCli(machine.data).folder(machine.cache))
    assert machine.due() == ["cdktf"]


def _jvm(machine: Machine) -> tuple[JvmClasses, Path]:
    classes = JvmClasses(machine.sources)
    return classes, classes.folder(machine.cache)


def test_the_classes_for_the_jvm_are_built_from_the_sources_which_stay_as_they_are(machine: Machine) -> None:
    machine.fetch()
    classes, folder = _jvm(machine)
    assert (folder / "penstock-jvm.jar").read_text() == "class A {}"
    assert classes.faults(folder) == []
    assert sorted(path.name for path in machine.sources.iterdir()) == ["pom.xml", "src"]
    assert "Penstock's classes for Spark's JVM, 0 kB" in machine.said.getvalue()


@pytest.mark.parametrize("changed", ["pom.xml", "src/main/java/A.java", "src/main/java/B.java"])
def test_changed_sources_are_built_beside_the_old_ones(machine: Machine, changed: str) -> None:
    machine.fetch()
    (machine.sources / changed).write_text("class B {}")
    assert machine.due() == ["jvm-classes"]
    machine.fetch()
    assert machine.due() == []
    assert len(list((machine.cache.folder / "jvm-classes").iterdir())) == 2


def test_a_changed_or_missing_jar_of_ours_is_built_again(machine: Machine) -> None:
    machine.fetch()
    classes, folder = _jvm(machine)
    (folder / "penstock-jvm.jar").write_text("half a jar")
    assert classes.faults(folder) == ["changed    jvm-classes/penstock-jvm.jar"]
    machine.fetch()
    (folder / "penstock-jvm.jar").unlink()
    assert classes.faults(folder) == ["missing    jvm-classes/penstock-jvm.jar"]
    machine.fetch()
    assert machine.due() == []


@pytest.mark.parametrize("build", ["echo No compiler is provided >&2; exit 1", "exit 0"], ids=["it fails", "it makes no jar"])
def test_classes_that_cannot_be_built_are_an_error_with_what_maven_said(machine: Machine, build: str) -> None:
    machine.tool("mvn", MAVEN.replace("mkdir target", f"{build}; mkdir target"))
    with pytest.raises(JvmClassesNotBuilt) as raised:
        machine.fetch()
    assert (raised.value.code, raised.value.exit_code) == ("TOOL-017", 4)
    assert "install a JDK" in raised.value.fix
    assert machine.due() == ["jvm-classes", "cdktf"]
    assert not list(machine.cache.folder.glob("tmp/*"))
