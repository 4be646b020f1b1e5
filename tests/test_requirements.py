"""The locks: every package by its hash, and no word of where it came from."""

from __future__ import annotations

import json
import re
from importlib.metadata import distribution
from pathlib import Path
from xml.etree import ElementTree

import pytest

from penstock.scripts.installation import locks
from penstock.scripts.layout import ROOT

REQUIREMENTS = ROOT / "requirements"
DATA = locks.folder()
IMAGE = ROOT / "infra" / "image"
FLINK, PLOTS = ROOT / "benchmarks/streaming/contestants/flink", ROOT / "benchmarks/streaming/plots"
LOCKS = sorted((path for folder in (REQUIREMENTS, DATA, IMAGE, FLINK, PLOTS) for path in folder.glob("*.lock")), key=lambda path: path.name)
POMS = sorted((path for folder in (DATA, FLINK) for path in folder.glob("*.pom.xml")), key=lambda path: path.name)
JVM_POM = ROOT / "jobs/jvm/pom.xml"
MAVEN = {"m": "http://maven.apache.org/POM/4.0.0"}


def names(paths: list[Path]) -> list[str]:
    return [path.name for path in paths]


def test_there_are_locks_to_look_at() -> None:
    expected = {
        "build.lock",
        "checkov.lock",
        "flink.lock",
        "image.lock",
        "localstack.lock",
        "main.lock",
        "plots.lock",
        "site.lock",
        "uv.lock",
    }
    assert expected == set(names(LOCKS))
    assert names(POMS) == ["flink-jars.pom.xml", "kafka-jars.pom.xml", "spark-jars.pom.xml"]


@pytest.mark.parametrize("lock", LOCKS, ids=names(LOCKS))
def test_every_python_package_has_one_version_and_a_hash(lock: Path) -> None:
    text = re.sub(r"\\\n", " ", lock.read_text())
    lines = [line for line in text.splitlines() if line and not line.lstrip().startswith("#")]
    assert lines
    for line in lines:
        assert re.fullmatch(r"[a-z0-9.-]+(\[[a-z,-]+\])?==\S+( ; [^@]+?)?( +--hash=sha256:[0-9a-f]{64})+ *", line), line


@pytest.mark.parametrize("lock", LOCKS, ids=names(LOCKS))
def test_a_python_lock_names_no_index_host_or_path(lock: Path) -> None:
    assert not re.search(r"https?:|file:|--(extra-)?index|--find-links|--trusted-host|@ |/tmp|/home", lock.read_text())


def test_every_node_package_has_a_hash_and_no_address() -> None:
    lock = json.loads((DATA / "node" / "package-lock.json").read_text())
    packages = {name: package for name, package in lock["packages"].items() if name}
    assert len(packages) > 100
    for name, package in packages.items():
        assert "resolved" not in package, name
        assert re.fullmatch(r"sha512-[A-Za-z0-9+/=]{88}", package.get("integrity", "")) or package.get("inBundle"), name


def test_the_node_packages_are_those_that_are_asked_for() -> None:
    asked = json.loads((DATA / "node" / "package.json").read_text())
    locked = json.loads((DATA / "node" / "package-lock.json").read_text())
    assert asked["dependencies"] == {"cdktf-cli": "0.21.0"}
    assert locked["packages"][""]["dependencies"] == asked["dependencies"]
    assert locked["packages"]["node_modules/cdktf-cli"]["version"] == "0.21.0"


@pytest.mark.parametrize("pom", [*POMS, JVM_POM], ids=names([*POMS, JVM_POM]))
def test_a_pom_names_no_repository_and_exact_versions(pom: Path) -> None:
    root = ElementTree.parse(pom).getroot()
    tags = {element.tag.rsplit("}", 1)[-1] for element in root.iter()}
    assert not tags & {"repositories", "pluginRepositories", "repository", "distributionManagement", "parent", "url"}
    properties = {f"${{{element.tag.rsplit('}', 1)[-1]}}}": element.text or "" for element in root.iterfind("m:properties/*", MAVEN)}
    versions = [element.text or "" for element in root.iterfind(".//m:version", MAVEN)]
    assert len(versions) > 2
    for version in versions:
        exact = properties.get(version, version)
        assert re.fullmatch(r"\d[\w.-]*", exact) and "SNAPSHOT" not in exact, version


def test_the_spark_jars_are_the_ones_of_the_pom_alone() -> None:
    root = ElementTree.parse(DATA / "spark-jars.pom.xml").getroot()
    sdk = root.findtext("m:properties/m:awssdk.version", namespaces=MAVEN) or ""

    def text(dependency: ElementTree.Element, tag: str) -> str:
        return (dependency.findtext(f"m:{tag}", namespaces=MAVEN) or "").replace("${awssdk.version}", sdk)

    dependencies = root.iterfind("m:dependencies/m:dependency", MAVEN)
    named = {f"{text(dependency, 'artifactId')}-{text(dependency, 'version')}.jar" for dependency in dependencies}
    assert named == {jar for folder, jar in _jars() if folder == "spark"}


def test_the_classes_for_the_jvm_are_compiled_against_the_versions_that_they_run_with() -> None:
    def versions(pom: Path) -> dict[str, str]:
        root = ElementTree.parse(pom).getroot()
        properties = {f"${{{element.tag.rsplit('}', 1)[-1]}}}": element.text or "" for element in root.iterfind("m:properties/*", MAVEN)}
        dependencies = root.iterfind("m:dependencies/m:dependency", MAVEN)
        named = {one.findtext("m:artifactId", "", MAVEN): one.findtext("m:version", "", MAVEN) for one in dependencies}
        return {artifact: properties.get(version, version) for artifact, version in named.items()}

    compiled, ours = versions(JVM_POM), versions(DATA / "spark-jars.pom.xml")
    pyspark = Path(str(distribution("pyspark").locate_file("pyspark/jars")))
    run = {jar.name for jar in pyspark.glob("*.jar")} | {f"{artifact}-{version}.jar" for artifact, version in ours.items()}
    # Spark's own version is on no repository as an artifact: the tests of the tier spark run the classes on it.
    here = {f"{artifact}-{version}.jar" for artifact, version in compiled.items() if version != compiled["spark-sql_2.13"]}
    assert here <= run


def test_each_jar_has_one_checksum() -> None:
    jars = _jars()
    assert len(jars) == len(set(jars))
    assert {folder for folder, _ in jars} == {"spark", "kafka"}
    assert ("kafka", "kafka_2.13-4.3.1.jar") in jars


def _jars() -> list[tuple[str, str]]:
    jars = []
    for line in (DATA / "jars.sha256").read_text().splitlines():
        match = re.fullmatch(r"[0-9a-f]{64}  (spark|kafka)/(\S+\.jar)", line)
        assert match, line
        jars.append((match[1], match[2]))
    return jars
