from __future__ import annotations

import os
import subprocess
from importlib.metadata import distribution
from pathlib import Path

import pytest

from penstock.scripts.image import bases
from penstock.scripts.image.build import base_names
from penstock.scripts.image.errors import BasesNotAssembled
from penstock.scripts.layout import ROOT

ENTRY_POINT = ROOT / "scripts/image/bases/entrypoint.sh"


def test_sparks_files_are_where_the_official_image_has_them() -> None:
    placed = {str(target): source for source, target in bases.sparks_files(distribution("pyspark"))}
    jars = Path(str(distribution("pyspark").locate_file("pyspark/jars")))
    assert {name.removeprefix("jars/") for name in placed if name.startswith("jars/")} == {
        str(jar.relative_to(jars)) for jar in jars.rglob("*.jar")
    }
    assert {"bin/spark-submit", "sbin/start-history-server.sh", "python/pyspark/worker.py", "python/lib/pyspark.zip"} <= set(placed)
    assert f"python/lib/py4j-{distribution('py4j').version}-src.zip" in placed
    assert all(source.is_file() for source in placed.values())
    # Nothing is there twice: PySpark's own copy of a folder goes to one place.
    assert not [name for name in placed if name.startswith("python/pyspark/jars/") or name.endswith((".cmd", ".pyc"))]


def test_the_assembled_bases_stand_for_those_of_the_dockerfile() -> None:
    names = base_names()
    assert set(names) == {"SPARK", "MAVEN", "UV"}
    assert names["SPARK"].startswith(f"apache/spark:{distribution('pyspark').version}-")
    assert bases.PREFIX not in "".join(names.values())


@pytest.mark.parametrize(("package", "given"), [("pyspark", distribution("pyspark").version), ("no-such-package", "not installed")])
def test_a_base_is_not_assembled_from_another_version_than_the_official_one_has(package: str, given: str) -> None:
    with pytest.raises(BasesNotAssembled) as raised:
        bases.installed(package, "apache/spark:9.9.9-scala2.13-java17-ubuntu")
    assert (raised.value.code, raised.value.given) == ("IMG-003", given)
    assert raised.value.fix == f"pip install {package}==9.9.9"


def test_the_authorities_are_those_that_python_trusts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = "-----BEGIN CERTIFICATE-----\nb25l\n-----END CERTIFICATE-----"
    other = "-----BEGIN CERTIFICATE-----\nb3RoZXI=\n-----END CERTIFICATE-----"
    bundle = tmp_path / "bundle.crt"
    bundle.write_text(f"# Ours\n{other}\n\n{one}\n{other}\n")
    monkeypatch.setenv("SSL_CERT_FILE", str(bundle))
    assert bases.authorities() == sorted([one, other])
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none.crt"))
    assert bases.authorities() == []


def test_the_entry_point_executes_a_command_as_it_is() -> None:
    ran = subprocess.run(
        ["bash", str(ENTRY_POINT), "printf", "%s|", "a b", "c"],
        env={"PATH": os.environ["PATH"], "SPARK_HOME": "/opt/spark"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert ran.stdout == "a b|c|"


def test_the_entry_point_names_the_variable_that_an_executor_misses() -> None:
    environment = {"PATH": os.environ["PATH"], "SPARK_HOME": "/opt/spark", "JAVA_HOME": "/opt/java", "SPARK_EXECUTOR_MEMORY": "1g"}
    ran = subprocess.run(["bash", str(ENTRY_POINT), "executor"], env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode != 0
    assert "SPARK_DRIVER_URL: unbound variable" in ran.stderr
