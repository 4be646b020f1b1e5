"""The wheel, installed where nothing of the checkout is: its contents, its extras, and a team's own jobs in a package called `jobs`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from penstock.scripts.installation.cache import Cache
from penstock.scripts.layout import ROOT
from tests import built_wheel, linked_environment

# All of a run on a busy machine with two cores.
LIMIT_S = 400
TEAM = {
    "jobs/__init__.py": "",
    "jobs/pages.py": 'def section(page):\n    return (page or "").strip("/").split("/")[0] or "home"\n',
    "jobs/clicks.py": """
from pyspark.sql import functions as F

from jobs.pages import section
from penstock import Job, Tag


def build(job: Job) -> None:
    clicks = job.source("clicks", "user STRING NOT NULL, at STRING, page STRING")
    job.write(clicks.filter("page <> '/health'").select(user="user", section=F.udf(section)("page")), "out")
    job.side_output("errors")
    job.side_output("late", Tag.LATE)
""",
    "jobs/expected.py": """
from collections import Counter

from penstock import Expectation, Recording


def expect(recording: Recording) -> Expectation:
    rows = ('{"section": "cart", "user": "bob"}', '{"section": "home", "user": "ann"}')
    return Expectation(rows=2, quarantined=1, exact=Counter(rows))
""",
    "clicks.yaml": """
apiVersion: penstock/v1
kind: StreamingJob
metadata: {name: clicks}
spec:
  app: jobs.clicks
  parallelism: 2
  executor: {slots: 2, memory: 2g}
  trigger: 1s
  sources:
    clicks: {kafka: {topic: clicks, partitions: 2}, time: {field: at, outOfOrderness: 10s}}
  sinks:
    out: {files: {path: clicks, prefix: clicks-}}
    errors: {kafka: {topic: clicks-errors}}
    late: {kafka: {topic: clicks-late}}
  local:
    input: {clicks: clicks.jsonl}
    expect: jobs.expected:expect
""",
    "clicks.jsonl": """\
{"user": "ann", "at": "2025-04-05T12:00:00Z", "page": "/"}
{"user": "bob", "at": "2025-04-05T12:00:01Z", "page": "/cart/2"}
{"user": "monitor", "at": "2025-04-05T12:00:02Z", "page": "/health"}
not JSON
""",
}
# Extra -> the packages and modules that it is for.
EXTRAS = {
    "": [
        "penstock.sizing",
        "penstock.jobs.spec",
        "penstock.jobs.flink",
        "penstock.scripts.installation",
        "penstock.scripts.repository",
        *(f"penstock.scripts.cli.{verb}" for verb in ("init", "size", "place", "cost", "lint", "catalog", "report", "setup", "from_flink")),
    ],
    "jobs": ["penstock", "penstock.jobs"],
    "infra": ["penstock.infra", "penstock.scripts.cli.synth"],
    "deploy": [
        "penstock.scripts.provisioning",
        "penstock.scripts.topics",
        *(f"penstock.scripts.cli.{verb}" for verb in ("bootstrap", "deploy", "destroy", "doctor", "topics")),
        "penstock.scripts.planning",
    ],
    "scan": ["penstock.scripts.security", "penstock.scripts.cli.scan"],
    "local": ["penstock.scripts.local", "penstock.scripts.emulation", "penstock.scripts.cli.up", "penstock.testing"],
}
# Imports what it is given with everything below it, from a wheel, and of this interpreter's packages only those that it is allowed.
IMPORTS = """
import importlib, json, pkgutil, sys
from importlib.metadata import packages_distributions

wheel, allowed, named = sys.argv[1], set(json.loads(sys.argv[2])), json.loads(sys.argv[3])
owners = packages_distributions()


class Guard:
    def find_spec(self, name, path=None, target=None):
        owned = owners.get(name.partition(".")[0])
        if owned and not {one.lower().replace("_", "-") for one in owned} & allowed:
            raise ModuleNotFoundError(f"{name} belongs to another extra", name=name)
        return None


sys.path.insert(0, wheel)
sys.meta_path.insert(0, Guard())
# These run in LocalStack's own environment, and in pytest.
left_out = ("penstock.scripts.emulation.localstack_main", "penstock.testing.plugin")
for name in named:
    module = importlib.import_module(name)
    if name == "penstock":
        for one in module.__all__:
            getattr(module, one)
        continue
    for below in pkgutil.walk_packages(getattr(module, "__path__", []), f"{name}."):
        if not below.name.endswith("__main__") and below.name not in left_out:
            importlib.import_module(below.name)
assert sys.modules["penstock"].__file__.startswith(wheel)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_wheel.build(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def penstock(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command of an environment with the wheel and its extra `all`."""
    python = linked_environment.create(tmp_path_factory.mktemp("installed") / "venv", ["all"], wheel)
    return python.with_name("penstock")


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("team")
    (folder / "jobs").mkdir()
    for name, text in TEAM.items():
        (folder / name).write_text(text)
    return folder


def run(penstock: Path, team: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    environment["PENSTOCK_CACHE"] = str(Cache.of_user().folder)
    return subprocess.run([penstock, *words], cwd=team, env=environment, capture_output=True, text=True, timeout=LIMIT_S, check=False)


def test_the_wheel_has_one_top_level_name_and_all_data(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert {name.split("/")[0] for name in names} == {"penstock", next(name.split("/")[0] for name in names if ".dist-info/" in name)}
    tracked = subprocess.run(
        ["git", "ls-files", "sizing", "jobs", "infra", "scripts", "testing"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout.split()
    # Shell scripts and what the tests with a Kubernetes API are built from belong to a checkout.
    shell = ("scripts/setup", "scripts/quickstart", "scripts/test", "scripts/benchmark", "scripts/chaos", "scripts/docs")
    own = (*shell, "scripts/kube/modules/", "scripts/kube/node_programs/", "scripts/kube/promtool/", "scripts/kube/registry/")
    wanted = {f"penstock/{name}" for name in tracked if not name.startswith(own)}
    assert wanted <= names, sorted(wanted - names)


def test_the_source_distribution_has_the_package_too(tmp_path: Path) -> None:
    source = built_wheel.sources(tmp_path / "source")
    build = f"from setuptools.build_meta import build_sdist; build_sdist({str(tmp_path)!r})"
    subprocess.run([sys.executable, "-c", build], cwd=source, check=True, capture_output=True, timeout=300)
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        names = {name.partition("/")[2] for name in opened.getnames()}
    for name in ("penstock/__init__.py", "penstock/sizing/__init__.py", "penstock/infra/image/Dockerfile", "pyproject.toml"):
        assert name in names


@pytest.mark.parametrize("extra", EXTRAS, ids=lambda extra: extra or "none")
def test_an_extra_has_what_it_is_for(wheel: Path, extra: str, tmp_path: Path) -> None:
    folder = tmp_path / "unpacked"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    allowed = json.dumps(sorted(linked_environment.distributions([extra] if extra else [])))
    command = [sys.executable, "-P", "-W", "ignore", "-c", IMPORTS, str(folder), allowed, json.dumps(EXTRAS[extra])]
    base = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    ran = subprocess.run(command, cwd=tmp_path, env=base, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize(
    "words", [("size", "clicks.yaml"), ("lint", "clicks.yaml"), ("synth", "dev"), ("setup", "--check")], ids=lambda w: w[0]
)
def test_a_verb_works_on_a_teams_own_files(penstock: Path, team: Path, words: tuple[str, ...]) -> None:
    ran = run(penstock, team, *words)
    assert ran.returncode == 0, ran.stderr
    assert "Traceback" not in ran.stderr


@pytest.mark.chaos
def test_a_teams_package_called_jobs_runs_to_checked_rows(penstock: Path, team: Path) -> None:
    ran = run(penstock, team, "up", "clicks.yaml")
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_a_package_without_its_extra_says_which_one_to_install(wheel: Path, team: Path, tmp_path: Path) -> None:
    bare = linked_environment.create(tmp_path / "venv", [], wheel).with_name("penstock")
    assert run(bare, team, "size", "clicks.yaml").returncode == 0
    ran = run(bare, team, "up", "clicks.yaml")
    assert ran.returncode == 4
    assert "error[TOOL-023]" in ran.stderr
    assert 'pip install "penstock-kit[local]"' in ran.stderr


def test_a_teams_package_called_penstock_is_refused(penstock: Path, team: Path, tmp_path: Path) -> None:
    (tmp_path / "penstock").mkdir()
    (tmp_path / "clicks.yaml").write_text(TEAM["clicks.yaml"])
    ran = run(penstock, tmp_path, "size", "clicks.yaml", "--app-path", str(team))
    assert ran.returncode == 2
    assert "error[SPEC-046]: name taken by Penstock\n" in ran.stderr
