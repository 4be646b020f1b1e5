"""An app's own packages beside those of the image, and the paths by which its driver and executors get them."""

from __future__ import annotations

import json
from importlib.metadata import distribution
from pathlib import Path

import pytest

from penstock.infra.app_packages import SPARKS_OWN, AppPackages, app_packages, constraints, image_packages, jars_conf
from penstock.infra.manifests.client_mode_conf import client_mode_conf
from penstock.infra.manifests.config_map import config_map, fingerprint
from penstock.infra.manifests.spark_application import spark_application
from penstock.jobs.configuration.runtime import RuntimeConfiguration
from penstock.jobs.spec import load
from penstock.sizing.errors import PenstockError
from tests.app_locks import SPEC, jar, sha256, spec
from tests.infra.manifests.jobs_in_cluster import deployed

HASH = f"sha256:{'1' * 64}"


def own(folder: Path, python: str | None = None, jars: str | None = None, text: str = SPEC) -> AppPackages:
    return app_packages(load(spec(folder, python=python, jars=jars, text=text)))


def test_spark_is_of_the_versions_that_the_tests_run() -> None:
    assert {name: {distribution(name).version} for name in SPARKS_OWN} == SPARKS_OWN


def test_every_package_of_the_images_lock_is_known_with_all_its_versions() -> None:
    known = image_packages()
    assert {"pyspark", "py4j", "pyarrow", "pandas", "numpy", "pydantic", "boto3"} <= set(known)
    assert len(known["numpy"]) == 2
    lines = constraints().splitlines()
    assert {line.split("==")[0] for line in lines} == set(known)
    assert "pyspark==4.3.0" in lines and any(line.startswith("numpy==") and " ; python_full_version" in line for line in lines)


def test_another_version_of_a_package_of_the_image_is_refused_with_both_versions_and_the_line(tmp_path: Path) -> None:
    with pytest.raises(PenstockError) as raised:
        own(tmp_path, f"geohash2==1.1 --hash={HASH}\npyarrow==19.0.1 --hash={HASH}\npyspark==3.5.0 --hash={HASH}\n")
    first, second = raised.value.errors
    (pyarrow,) = image_packages()["pyarrow"]
    assert (first.code, str(first.at), first.given) == ("SPEC-062", f"{tmp_path / 'requirements.lock'}:2", "pyarrow==19.0.1")
    assert first.need == f"pyarrow=={pyarrow}, which every job has"
    assert (second.given, second.need) == ("pyspark==3.5.0", "pyspark==4.3.0, which every job has")


def test_the_mistakes_of_both_locks_are_reported_at_once(tmp_path: Path) -> None:
    with pytest.raises(PenstockError) as raised:
        own(tmp_path, "geohash2\n", "sketches\n")
    assert [str(fault.at) for fault in raised.value.errors] == [f"{tmp_path / name}:1" for name in ("requirements.lock", "jars.lock")]


def test_jars_are_named_by_the_lock_alone(tmp_path: Path) -> None:
    text = f"{SPEC}  sparkConf: {{spark.jars: other.jar}}\n"
    with pytest.raises(PenstockError, match="SPEC-008") as raised:
        own(tmp_path, jars=f"org.example:sketches:1.0 --hash={HASH}\n", text=text)
    assert raised.value.errors[0].path == "spec.sparkConf.spark.jars"


def test_a_lock_of_nothing_else_than_the_images_packages_adds_none(tmp_path: Path) -> None:
    assert own(tmp_path, f"pyspark==4.3.0 --hash={HASH}\n") == AppPackages()


def test_a_path_with_a_space_is_one_that_spark_reads() -> None:
    assert jars_conf(["/a b/c.jar", "/d.jar"]) == {"spark.jars": "local:/a%20b/c.jar,local:/d.jar"}
    assert jars_conf([]) == {}


def test_a_deployed_job_has_the_folders_of_its_locks_in_the_image(tmp_path: Path) -> None:
    jars = f"org.example:sketches:1.0 --hash={HASH}\nour-functions.jar --hash=sha256:{sha256(jar(tmp_path))}\n"
    packages = own(tmp_path, f"geohash2==1.1 --hash={HASH}\n", jars)
    job = deployed(packages=packages)
    assert packages.python is not None and packages.jars is not None
    runtime = RuntimeConfiguration.model_validate_json(config_map(job)["data"]["runtime.json"])
    assert runtime.package_path == (f"/opt/penstock/packages/{packages.python.key}/python",)
    folder = f"/opt/penstock/packages/{packages.jars.key}/jars"
    listed = f"local:{folder}/sketches-1.0.jar,local:{folder}/our-functions.jar"
    assert runtime.spark_conf["spark.jars"] == client_mode_conf(job)["spark.jars"] == listed
    operated = spark_application(job)["spec"]
    assert operated["sparkConf"]["spark.jars"] == listed
    # Another lock restarts the driver.
    changed = own(tmp_path, f"geohash2==1.2 --hash={HASH}\n", jars)
    assert len({fingerprint(deployed()), fingerprint(job), fingerprint(deployed(packages=changed))}) == 3
    assert "spark.jars" not in json.dumps(config_map(deployed())["data"])
