from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest

from penstock.infra.app_packages import PACKAGES
from penstock.infra.manifests.client_mode_conf import CLASS_DATA
from penstock.infra.manifests.config_map import APPS
from penstock.infra.manifests.driver_pod import PYTHON, READY_FILE
from penstock.infra.manifests.pod_security import SPARK_UID, WORK
from penstock.infra.manifests.spark_application import PROGRAM, SPARK_VERSION
from penstock.jobs.configuration.runtime import READY_FILE_VARIABLE
from penstock.scripts import layout
from penstock.scripts.errors import NotSetUp
from penstock.scripts.installation import jvm_classes, locks
from penstock.scripts.installation.cache import Cache
from penstock.scripts.installation.jvm_classes import JAR, JvmClasses
from penstock.scripts.layout import ROOT
from tests import built_wheel
from tests.infra.dockerfile import Stage, stages

DOCKERFILE = ROOT / "infra/image/Dockerfile"
# Distributions that are part of Spark's own image.
IN_SPARK = {"pyspark", "py4j"}


@pytest.fixture(scope="module")
def built() -> dict[str | None, Stage]:
    return {stage.name: stage for stage in stages(DOCKERFILE)}


@pytest.fixture(scope="module")
def image(built: dict[str | None, Stage]) -> Stage:
    """The last stage, which is the image that runs."""
    return built[None]


def lock(name: str) -> dict[str, set[str]]:
    """Package -> its lines of a lock file, one per version."""
    text = (ROOT / name).read_text("utf-8")
    packages: dict[str, set[str]] = {}
    for package, line in re.findall(r"^(([a-z0-9-]+)==.*?) \\$", text, re.MULTILINE):
        packages.setdefault(line, set()).add(package)
    return packages


def environment(stage: Stage) -> dict[str, str]:
    return dict(one.split("=", 1) for text in stage.of("ENV") for one in shlex.split(text))


def test_every_base_has_a_version_and_may_be_given_by_digest(built: dict[str | None, Stage]) -> None:
    pulled = [stage.base for stage in built.values() if stage.base not in {*built, "scratch"}]
    assert all(re.fullmatch(r"[a-z0-9/.-]+:[0-9][A-Za-z0-9._-]+", base) for base in pulled), pulled
    froms = re.findall(r"^FROM (\S+)", DOCKERFILE.read_text("utf-8"), re.MULTILINE)
    assert all(re.fullmatch(r"\$\{([A-Z]+)_IMAGE\}:\$\{\1_TAG\}", base) for base in froms if base not in {*built, "scratch"})


def test_the_image_is_made_from_sparks_own_of_the_version_that_the_tests_run(built: dict[str | None, Stage], image: Stage) -> None:
    # A copy of its files, because a layer cannot make the one below it smaller.
    assert image.base == "scratch"
    assert image.of("COPY")[0] == "--from=system / /"
    assert "--from=spark /opt/spark/ /opt/spark/" in image.of("COPY")
    assert built["spark"].base == built["packages"].base == built["python"].base == "interpreter"
    base = built["system"].base
    assert base == built["interpreter"].base
    assert re.fullmatch(r"apache/spark:([0-9.]+)-scala2\.13-java17-ubuntu", base)
    version = base.split(":")[1].split("-")[0]
    assert version == SPARK_VERSION == distribution("pyspark").version


def test_it_does_not_run_as_root(image: Stage) -> None:
    assert image.of("USER")[-1] == str(SPARK_UID)
    # The user is set after all files are written, so that the running process cannot write to them.
    keywords = [instruction.keyword for instruction in image.instructions]
    assert not {"COPY", "ADD", "RUN"} & set(keywords[len(keywords) - keywords[::-1].index("USER") :])


def test_all_that_is_copied_is_there_and_docker_is_given_it(built: dict[str | None, Stage]) -> None:
    allowed = [line[1:] for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines() if line.startswith("!")]
    for stage in built.values():
        assert not stage.of("ADD")
        for text in stage.of("COPY"):
            sources = [word for word in text.split()[:-1] if not word.startswith("--")]
            if text.startswith("--from="):
                assert text.split()[0].removeprefix("--from=") in built
                continue
            for source in sources:
                # The wheel, and the apps' own packages, are written before the image is built.
                assert (ROOT / source).exists() or source in ("dist/penstock_kit-*.whl", "dist/packages*")
                assert source in allowed


def test_docker_is_given_nothing_that_is_not_named() -> None:
    lines = [line for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines() if line and not line.startswith("#")]
    assert lines[0] == "*"


def test_nothing_is_installed_but_what_a_lock_names(built: dict[str | None, Stage], image: Stage) -> None:
    runs = [text for stage in built.values() for text in stage.of("RUN")]
    assert not [
        text for text in runs if re.search(r"\b(apt|apt-get|apk|curl|wget|pip3? install|npm)\b", text.replace("uv pip install", ""))
    ]
    installs = [text for name in ("packages", "python") for text in built[name].of("RUN") if "uv pip install" in text]
    install, apps, own = installs
    assert "--no-index --no-deps" in own and own.endswith("/build/penstock_kit-*.whl")
    for flag in ("--require-hashes", "--no-deps", "--only-binary :all:"):
        assert flag in install and flag in apps
    assert "-r /build/image.lock" in install and 'requirements.lock"' in apps
    # Build tools stay in the earlier stages.
    assert not [text for text in image.of("COPY") if "/uv" in text or ".m2" in text]


def test_the_jars_are_those_of_the_set_up_with_their_checksums(built: dict[str | None, Stage], tmp_path: Path) -> None:
    (run,) = built["jars"].of("RUN")
    assert "-f spark-jars.pom.xml dependency:copy-dependencies" in run
    checks = run[run.index("grep ") :]
    shutil.copy(locks.folder() / "jars.sha256", tmp_path)

    def checked() -> int:
        return subprocess.run(["bash", "-ec", checks], cwd=tmp_path, capture_output=True, check=False).returncode

    try:
        jars = [jar for jar in layout.spark_jars() if jar.name != JAR]
    except NotSetUp as error:
        if os.environ.get("PENSTOCK_REQUIRE_ALL") == "1":
            pytest.fail(str(error))
        pytest.skip(f"{error}: {error.fix}")
    (tmp_path / "spark").mkdir()
    for jar in jars:
        os.link(jar, tmp_path / "spark" / jar.name) if jar.stat().st_dev == tmp_path.stat().st_dev else shutil.copy(jar, tmp_path / "spark")
    assert checked() == 0
    (tmp_path / "spark/other.jar").write_bytes(b"")
    assert checked() != 0
    (tmp_path / "spark/other.jar").unlink()
    next((tmp_path / "spark").glob("hadoop-aws-*.jar")).unlink()
    assert checked() != 0


def test_the_classes_for_the_jvm_are_built_as_the_set_up_builds_them(built: dict[str | None, Stage], image: Stage) -> None:
    (copied,) = built["classes"].of("COPY")
    assert copied.split() == ["jobs/jvm/", "./"]
    (run,) = built["classes"].of("RUN")
    assert f"-f pom.xml {' '.join(jvm_classes.GOALS)}" in run
    assert f"--from=classes /build/target/{JAR} /opt/spark/jars/lib/" in image.of("COPY")
    # The class path has it before it is there.
    assert re.search(rf"class_path\.py /opt/spark/jars \S+ {JAR} ", " ".join(built["spark"].of("RUN")))


def test_docker_is_given_the_classes_sources_and_nothing_that_a_build_left_beside_them() -> None:
    tracked = subprocess.run(["git", "ls-files", "jobs/jvm"], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60).stdout
    assert {path.name for path in (ROOT / "jobs/jvm").iterdir()} == {"pom.xml", "src"} == {line.split("/")[2] for line in tracked.split()}


def test_the_jar_of_the_classes_has_every_class_of_the_sources(tmp_path: Path) -> None:
    """Built here by the real Maven, as `penstock setup` did."""
    try:
        (jar,) = [jar for jar in layout.spark_jars() if jar.name == JAR]
    except NotSetUp as error:
        if os.environ.get("PENSTOCK_REQUIRE_ALL") == "1":
            pytest.fail(str(error))
        pytest.skip(f"{error}: {error.fix}")
    with zipfile.ZipFile(jar) as archive:
        classes = {name.removesuffix(".class") for name in archive.namelist() if name.endswith(".class") and "$" not in name}
        times = {entry.date_time for entry in archive.infolist()}
    sources = ROOT / "jobs/jvm/src/main/java"
    assert classes == {str(path.relative_to(sources).with_suffix("")) for path in sources.rglob("*.java")}
    # The same sources give the same bytes.
    assert times == {(2026, 1, 1, 0, 0, 0)}
    assert jar.parent == JvmClasses().folder(Cache.of_user())


def test_no_jar_stands_in_the_way_of_one_of_sparks_own() -> None:
    def bare(name: str) -> str:
        return re.sub(r"-[0-9].*", "", name)

    pyspark = Path(str(distribution("pyspark").locate_file("pyspark/jars")))
    own = {bare(jar.name) for jar in pyspark.glob("*.jar")}
    ours = {bare(line.split("/")[1]) for line in (locks.folder() / "jars.sha256").read_text().splitlines() if " spark/" in line}
    assert ours and not ours & own


def test_the_images_packages_are_those_of_the_jobs_as_the_tests_run_them() -> None:
    image, main = lock("infra/image/image.lock"), lock("requirements/main.lock")
    assert image and all(lines <= main[package] for package, lines in image.items())
    assert not IN_SPARK & set(image)


def test_py4j_is_the_one_that_spark_brings(image: Stage) -> None:
    """`slim_spark.py` unpacks it beside PySpark."""
    assert environment(image)["PYTHONPATH"].split(":")[-1] == f"{environment(image)['SPARK_HOME']}/python"
    version = distribution("py4j").version
    assert list(Path(str(distribution("pyspark").locate_file("pyspark/python/lib"))).glob(f"py4j-{version}-src.zip"))


def test_the_manifests_and_the_image_mean_the_same_paths(image: Stage) -> None:
    variables = environment(image)
    assert variables["PYSPARK_PYTHON"] == variables["PYSPARK_DRIVER_PYTHON"] == PYTHON
    assert variables[READY_FILE_VARIABLE] == READY_FILE
    assert f"--from=python {PACKAGES}/ {PACKAGES}/" in image.of("COPY")
    assert APPS in variables["PYTHONPATH"].split(":")
    assert image.of("WORKDIR") == [WORK]
    assert PROGRAM == "local:///opt/penstock/run.py"
    assert any(text.endswith("infra/image/run.py /opt/penstock/") for text in image.of("COPY"))
    (health,) = image.of("HEALTHCHECK")
    assert json.loads(health[health.index("[") :]) == ["test", "-e", READY_FILE]


def test_a_new_version_of_penstock_changes_none_of_the_large_layers(built: dict[str | None, Stage], image: Stage) -> None:
    """A layer is built again when one above it changes."""
    wheel = "dist/penstock_kit-*.whl /build/"
    assert not [stage.name for stage in built.values() if wheel in stage.of("COPY") and stage.name != "python"]
    texts = [instruction.text for instruction in built["python"].instructions]
    assert texts[texts.index(wheel) + 1 :] == [text for text in built["python"].of("RUN") if "/opt/penstock/lib" in text]
    copied = image.of("COPY")
    lib = copied.index("--from=python /opt/penstock/lib/ /opt/penstock/lib/")
    large = ("/opt/venv/", "/opt/spark/", CLASS_DATA.rpartition("/")[2])
    assert max(index for index, text in enumerate(copied) if any(part in text for part in large)) < lib
    assert "/opt/penstock/lib" in environment(image)["PYTHONPATH"].split(":")


def test_the_archive_of_classes_is_made_of_the_class_path_of_the_image_and_without_penstock(
    built: dict[str | None, Stage], image: Stage
) -> None:
    """A version of Penstock that changes it would be 230 MB larger for each node that pulls it."""
    stage = built["class-data"]
    assert stage.base == "spark"
    copied = stage.of("COPY")
    # What is on the class path is in both: the archive has each jar's size and time.
    jars = [text for text in copied if "/opt/spark/jars/" in text]
    assert jars and jars == [text for text in image.of("COPY") if "/opt/spark/jars/" in text]
    assert not [text for text in copied if "--from=python" in text or ".whl" in text]
    (training,) = [text.split()[0] for text in copied if not text.startswith("--from=")]
    assert not re.search(r"^\s*(from|import) penstock", (ROOT / training).read_text("utf-8"), re.MULTILINE)
    made = f"/build/{Path(CLASS_DATA).name}"
    assert f"--from=class-data {made} {Path(CLASS_DATA).parent}/" in image.of("COPY")
    assert f"{Path(training).name} {made} " in stage.of("RUN")[-1]


def test_nothing_of_the_image_is_in_sparks_folder_of_configurations(built: dict[str | None, Stage], image: Stage) -> None:
    """An archive of classes does not fit where a folder of the class path has files."""
    assert not [text for stage in (built["spark"], image) for text in stage.of("COPY") if "/opt/spark/conf" in text]


def test_sparks_entry_point_is_the_images_because_it_starts_the_executors(image: Stage) -> None:
    assert image.of("ENTRYPOINT") == ['["/opt/entrypoint.sh"]']


def test_the_image_has_the_settings_of_the_base_that_a_copy_of_its_files_lacks(image: Stage) -> None:
    """Source: apache/spark-docker's Dockerfiles of Spark 4 and those of Eclipse Temurin 17."""
    variables = environment(image)
    assert (variables["JAVA_HOME"], variables["SPARK_HOME"]) == ("/opt/java/openjdk", "/opt/spark")
    folders = variables["PATH"].split(":")
    assert folders[0] == PYTHON.removesuffix("/python")
    assert {"/opt/java/openjdk/bin", "/usr/bin", "/bin"} <= set(folders)
    # Otherwise Java 17 reads and writes files as ASCII.
    assert variables["LANG"].endswith("UTF-8")


def test_what_is_in_the_image_starts_the_driver(image: Stage, tmp_path: Path) -> None:
    """It may import this interpreter's packages only if they are in the image's lock or Spark's, and of this checkout only the wheel's
    files.
    """
    assert not [text for text in image.of("COPY") if text.split()[-1] == "/opt/penstock/" and "run.py" not in text]
    root = tmp_path / "opt/penstock"
    with zipfile.ZipFile(built_wheel.build(tmp_path / "wheel")) as wheel:
        wheel.extractall(root)
    shutil.copy(ROOT / "infra/image/run.py", root)
    packages = sorted(IN_SPARK | set(lock("infra/image/image.lock")))
    guard = tmp_path / "guard.py"
    guard.write_text(_GUARD, "utf-8")
    command = [sys.executable, "-P", str(guard), json.dumps(packages), str(root), str(root / "run.py"), "--help"]
    base = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    ran = subprocess.run(command, cwd=tmp_path, env=base, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "configuration" in ran.stdout


_GUARD = """
import json, runpy, sys
from importlib.metadata import packages_distributions

allowed, root, program = set(json.loads(sys.argv[1])), sys.argv[2], sys.argv[3]
owners = packages_distributions()


class Guard:
    def find_spec(self, name, path=None, target=None):
        owned = owners.get(name.partition(".")[0])
        if owned and not {one.lower().replace("_", "-") for one in owned} & allowed:
            raise ModuleNotFoundError(f"{name} is not in the image", name=name)
        return None


sys.path[:] = [root, *(path for path in sys.path if path and not path.startswith(sys.argv[0]))]
sys.meta_path.insert(0, Guard())
import penstock.jobs
assert penstock.jobs.__file__.startswith(root), penstock.jobs.__file__
import penstock.jobs.driver.runtime, penstock.jobs.apps.user_credit, penstock.jobs.apps.flights, penstock.jobs.kafka.security
try:
    import moto
except ModuleNotFoundError:
    pass
else:
    raise AssertionError("the guard lets everything pass")
sys.argv[:] = [program, *sys.argv[4:]]
runpy.run_path(program, run_name="__main__")
"""
