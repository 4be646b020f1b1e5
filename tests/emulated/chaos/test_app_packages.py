"""A job whose app has a Python package and a jar of its own, in `penstock check` and in `penstock up` with an executor of its own."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path

import pytest
from rich.console import Console

from penstock.infra.app_packages import app_packages
from penstock.jobs.spec import load
from penstock.scripts.installation.app_packages import install
from penstock.scripts.layout import ROOT
from penstock.scripts.progress import Steps
from tests.app_locks import lock_of, sha256, wheel
from tests.emulated.clicks import APP, LIMIT_S, LINES, SPEC, up, wait_until_gone

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}
PENSTOCK = (sys.executable, "-m", "penstock.scripts")
PAGES = """
def short(page):
    # Rows of side outputs pass through as well, without data.
    return page and page.strip("/")
"""
# The driver imports the package too; the SQL function is the jar's.
WITH_PACKAGES = APP.replace('page="page"', 'page=F.udf(a_teams_pages.short)("page"), loud="loud(page)"').replace(
    "def build(job: Job) -> None:",
    """import a_teams_pages
from pyspark.sql import functions as F

def build(job: Job) -> None:
    job.session.udf.registerJavaFunction("loud", "org.example.Loud", "string")""",
)
JAVA = """
package org.example;

public class Loud implements org.apache.spark.sql.api.java.UDF1<String, String> {
    @Override
    public String call(String page) {
        return page == null ? null : page.toUpperCase();
    }
}
"""
GENERATOR = """
import a_teams_pages

def lines():
    assert a_teams_pages.short("/cart/") == "cart"
    yield from open({file!r}).read().splitlines()
"""
EXPECTED = """
from collections import Counter
from penstock import Expectation

def expect(recording):
    rows = ('{"loud": "/", "page": "", "user": "ann"}', '{"loud": "/CART", "page": "cart", "user": "bob"}')
    return Expectation(rows=2, quarantined=1, exact=Counter(rows))
"""


def jar(folder: Path) -> Path:
    """Compiled by javac against Spark's own jars."""
    classes, source = folder / "classes", folder / "Loud.java"
    classes.mkdir(parents=True)
    source.write_text(JAVA, encoding="utf-8")
    spark = Path(str(distribution("pyspark").locate_file("pyspark/jars")))
    subprocess.run(["javac", "-proc:none", "-cp", f"{spark}/*", "-d", str(classes), str(source)], check=True, timeout=120)
    subprocess.run(["jar", "--create", "--file", str(folder / "loud.jar"), "-C", str(classes), "."], check=True, timeout=120)
    return folder / "loud.jar"


@pytest.fixture
def with_packages(spec: Path) -> Iterator[Path]:
    """The spec with its locks. Its entries of the user's cache go with it."""
    if shutil.which("javac") is None:
        pytest.skip("javac is not in PATH")
    folder = spec.parent
    built = wheel(folder / "wheels", {"a_teams_pages.py": PAGES})
    files = {
        "requirements.lock": lock_of(built),
        "jars.lock": f"libs/loud.jar --hash=sha256:{sha256(jar(folder / 'libs'))}\n",
        "clicks_app.py": WITH_PACKAGES,
        "clicks_lines.py": GENERATOR.format(file=str(folder / "clicks.jsonl")),
        "clicks_expected.py": EXPECTED,
        "clicks.jsonl": LINES,
        spec.name: SPEC.replace("  parallelism", "  packages: {python: requirements.lock, jars: jars.lock}\n  parallelism").replace(
            "input: {clicks: clicks.jsonl}", "input: {clicks: clicks_lines:lines}\n    expect: clicks_expected:expect"
        ),
    }
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    yield spec
    installed = install(app_packages(load(spec)), Steps(Console(file=io.StringIO())))
    for entry in {*installed.path, *(one.parent for one in installed.jars)}:
        shutil.rmtree(entry)


def test_an_apps_own_packages_are_there_in_its_check_on_the_driver_and_on_executors(with_packages: Path, temporary: Path) -> None:
    checked = subprocess.run(
        [*PENSTOCK, "check", str(with_packages)], env=ENVIRONMENT, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    assert checked.returncode == 0, checked.stderr
    running = up(with_packages, temporary, "--executors", "1")
    _, result = running.communicate(timeout=LIMIT_S)
    assert running.returncode == 0, result
    assert "app-packages" in checked.stderr and "app-jars" in checked.stderr and "app-jars" not in result, "installed once"
    assert "correct: all rows and side outputs match" in result, result
    assert list(temporary.iterdir()) == []
    wait_until_gone(temporary)
