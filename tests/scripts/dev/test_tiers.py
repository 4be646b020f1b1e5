"""The runner of the tests, on a small tree of tests of its own with the real conftest."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from penstock.scripts.dev import tiers
from penstock.scripts.layout import ROOT

FILES = {
    "pytest.ini": "[pytest]\naddopts = -p no:cacheprovider\n",
    "tests/test_plain.py": "def test_one(): pass\ndef test_two(): pass\n",
    "tests/test_marked.py": "import pytest\n@pytest.mark.spark\ndef test_marked(): pass\n",
    "tests/emulated/test_folder.py": "def test_folder(): pass\nimport pytest\ndef test_absent(): pytest.skip('no broker here')\n",
}


class Tree:
    """A folder with tests, and the runner in it."""

    def __init__(self, root: Path) -> None:
        # A tier's name in the path of the checkout is not a tier.
        self.root = root / "chaos" / "kube"
        for path, text in FILES.items():
            self.write(path, text)
        shutil.copy(ROOT / "tests" / "conftest.py", self.root / "tests")

    def write(self, path: str, text: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def start(self, *arguments: str, environment: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "PENSTOCK"))}
        # The small tree needs no plugin, and looking for them takes longer than its tests.
        kept["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        # Starting the workers takes longer than the tests, too: only where it is about them.
        kept["PYTEST_XDIST_AUTO_NUM_WORKERS"] = "0"
        return subprocess.Popen(
            [sys.executable, "-m", "penstock.scripts.dev.tiers", *arguments],
            cwd=self.root,
            env={**kept, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, *arguments: str, environment: Mapping[str, str] | None = None) -> tuple[int, str]:
        process = self.start(*arguments, environment=environment)
        said, _ = process.communicate(timeout=60)
        return process.returncode, said


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


# As on a machine with two cores: a worker a core.
TWO_CORES = {"PYTEST_XDIST_AUTO_NUM_WORKERS": "2"}


def test_on_two_cores_the_tier_fast_has_two_workers_and_counts_what_both_ran(tree: Tree) -> None:
    for name in ("one", "two"):
        tree.write(f"tests/test_worker_{name}.py", "import os, pytest\ndef test_worker(): pytest.fail(os.environ['PYTEST_XDIST_WORKER'])\n")
    tree.write("tests/test_unreadable.py", "import no_module_of_this_name\n")
    tree.write("tests/test_skipped.py", "import pytest\ndef test_skipped(): pytest.skip('not here')\n")
    code, said = tree.run("--tier", "fast", environment=TWO_CORES)
    assert code == 1
    assert {"Failed: gw0", "Failed: gw1"} == set(re.findall(r"Failed: gw\d+", said))
    assert said.splitlines()[-1] == "2 passed, 3 failed, 1 skipped", "both read the file that can't be read: it is one failure"


def test_the_default_tiers_run_by_marker_and_folder_and_are_summed(tree: Tree) -> None:
    code, said = tree.run()
    assert code == 0, said
    assert re.search(r"^fast +[\d.]+ s  2 passed, 0 failed, 0 skipped$", said, re.MULTILINE)
    assert re.search(r"^spark +[\d.]+ s  1 passed, 0 failed, 0 skipped$", said, re.MULTILINE)
    assert re.search(r"^emulated +[\d.]+ s  1 passed, 0 failed, 1 skipped$", said, re.MULTILINE)
    assert said.splitlines()[-1] == "4 passed, 0 failed, 1 skipped"


def test_a_tier_without_tests_says_so_and_is_no_error(tree: Tree) -> None:
    code, said = tree.run("--tier", "spark,kube")
    assert code == 0, said
    assert re.search(r"^kube +[\d.]+ s  no tests yet$", said, re.MULTILINE)
    assert said.splitlines()[-1] == "1 passed, 0 failed, 0 skipped"


def test_localstack_is_a_short_name_of_its_tier(tree: Tree) -> None:
    tree.write("tests/localstack/test_folder.py", "def test_folder(): pass\n")
    code, said = tree.run("--localstack")
    assert code == 0, said
    assert re.search(r"^localstack +[\d.]+ s  1 passed, 0 failed, 0 skipped$", said, re.MULTILINE)
    assert said.splitlines()[-1] == "1 passed, 0 failed, 0 skipped"


@pytest.mark.parametrize("environment", [{}, TWO_CORES], ids=["one core", "two cores"])
def test_localstack_and_kube_run_beside_each_other_and_localstack_first(tree: Tree, environment: dict[str, str]) -> None:
    tree.write("tests/kube/test_a.py", "def test_a(): pass\ndef test_b(): pass\n")
    tree.write("tests/localstack/test_c.py", "def test_c(): pass\n")
    code, said = tree.run("--tier", "kube,localstack,spark", "--", "-v", environment=environment)
    assert code == 0, said
    assert re.search(r"^localstack, kube +[\d.]+ s  3 passed, 0 failed, 0 skipped$", said, re.MULTILINE)
    assert said.splitlines()[-1] == "4 passed, 0 failed, 0 skipped"
    if not environment:
        assert said.index("test_c PASSED") < said.index("test_a PASSED")


def test_a_run_without_any_test_is_an_error(tree: Tree) -> None:
    code, said = tree.run("--tier", "fast", "--", "-k", "nothing_of_this_name")
    assert code == 1
    assert said.splitlines()[-2:] == ["there was no test to run", "0 passed, 0 failed, 0 skipped"]


def test_failures_and_errors_count_as_failed(tree: Tree) -> None:
    tree.write(
        "tests/test_bad.py",
        "import pytest\n@pytest.fixture\ndef broken(): raise OSError\ndef test_wrong(): assert False\ndef test_broken(broken): pass\n",
    )
    code, said = tree.run("--tier", "fast")
    assert code == 1
    assert said.splitlines()[-1] == "2 passed, 2 failed, 0 skipped"


def test_one_that_hangs_and_swallows_its_limit_is_a_failure_that_says_where(tree: Tree) -> None:
    swallows = "try: threading.Event().wait()\n    finally: threading.Event().wait()"
    tree.write("tests/test_hanging.py", f"import threading\ndef test_hanging():\n    {swallows}\n")
    limits = ("-p", "pytest_timeout", "-o", "timeout=0.2", "-o", "faulthandler_timeout=1")
    code, said = tree.run("--tier", "fast", "--", *limits, environment=TWO_CORES)
    assert (code, said.splitlines()[-1]) == (1, "2 passed, 1 failed, 0 skipped"), said
    assert "in test_hanging" in said
    assert "crashed while running 'tests/test_hanging.py::test_hanging'" in said


def test_the_files_that_took_longest_begin_first_once_that_is_recorded(tree: Tree) -> None:
    tree.write("tests/deep/test_z.py", "class TestLong:\n    def test_long(self): pass\n    def test_longest(self): pass\n")
    tree.write("tests/durations.json", '{"emulated": {"tests/emulated/test_folder.py": 7}, "fast": {"tests/deep/test_z.py": 30}}')
    code, said = tree.run("--tier", "fast", "--", "-v")
    assert code == 0, said
    ran = re.findall(r"^(tests/\S+?)::", said, re.MULTILINE)
    assert ran == ["tests/deep/test_z.py"] * 2 + ["tests/test_plain.py"] * 2
    # Nothing here takes seconds.
    assert tree.run("--tier", "fast", "--record-durations")[0] == 0
    assert json.loads((tree.root / "tests/durations.json").read_text()) == {"emulated": {"tests/emulated/test_folder.py": 7}, "fast": {}}


def test_a_files_duration_is_that_of_its_tests_and_their_set_up(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    cases = (("tests.a.test_b", 3), ("tests.a.test_b", 2.6), ("tests.a.test_c.TestOne", 50), ("tests.a.test_d", 4.9))
    xml = "".join(f'<testcase classname="{name}" name="test" time="{taken_s}" />' for name, taken_s in cases)
    report.write_text(f"<testsuites><testsuite>{xml}</testsuite></testsuites>")
    assert tiers._durations(report) == {"tests/a/test_c.py": 50, "tests/a/test_b.py": 6}


def test_a_file_that_can_not_be_read_is_a_failure(tree: Tree) -> None:
    tree.write("tests/test_bad.py", "import no_module_of_this_name\n")
    code, said = tree.run("--tier", "fast")
    assert code == 1
    assert said.splitlines()[-1] == "0 passed, 1 failed, 0 skipped"


def test_where_all_must_run_a_skip_is_a_failure_with_its_reason(tree: Tree) -> None:
    tree.write("tests/emulated/test_module.py", "import pytest\npytest.importorskip('no_module_of_this_name')\n")
    tree.write("tests/test_expected.py", "import pytest\n@pytest.mark.xfail(strict=True)\ndef test_known(): assert False\n")
    code, said = tree.run("--tier", "emulated", "--", "--continue-on-collection-errors", environment={"PENSTOCK_REQUIRE_ALL": "1"})
    assert code == 1
    assert "no broker here" in said
    assert "could not import 'no_module_of_this_name'" in said
    assert said.splitlines()[-1] == "1 passed, 2 failed, 0 skipped"
    code, said = tree.run("--tier", "fast", environment={"PENSTOCK_REQUIRE_ALL": "1"})
    assert code == 0, "a test that fails as expected has run"


@pytest.mark.parametrize(
    ("tier", "options", "counts"),
    [("spark", [], 3), ("executors", [], 2), ("executors", ["--", "--all-of-spark"], 4), ("spark,executors", [], 5)],
    ids=["spark", "executors", "all of spark on executors", "both"],
)
def test_the_tier_executors_runs_chosen_tests_of_the_tier_spark_too(tree: Tree, tier: str, options: list[str], counts: int) -> None:
    tree.write("tests/spark/test_chosen.py", "import pytest\n@pytest.mark.on_executors\ndef test_chosen(): pass\ndef test_other(): pass\n")
    tree.write("tests/spark/executors/test_cluster.py", "def test_cluster(): pass\n")
    code, said = tree.run("--tier", tier, *options)
    assert code == 0, said
    assert said.splitlines()[-1] == f"{counts} passed, 0 failed, 0 skipped", "in the small tree one more test has the marker spark"


def test_the_folders_of_other_tiers_are_not_read(tree: Tree) -> None:
    tree.write("tests/emulated/test_bad.py", "import no_module_of_this_name\n")
    assert tree.run("--tier", "fast")[0] == 0
    assert tree.run("--tier", "emulated")[0] == 1


def test_a_folder_within_that_of_another_tier_decides(tree: Tree) -> None:
    tree.write("tests/spark/chaos/test_long.py", "def test_long(): pass\n")
    tree.write("tests/spark/test_bad.py", "import no_module_of_this_name\n")
    code, said = tree.run("--tier", "chaos")
    assert (code, said.splitlines()[-1]) == (0, "1 passed, 0 failed, 0 skipped"), said


def test_what_takes_long_may_be_marked_in_the_folder_of_another_tier(tree: Tree) -> None:
    tree.write("tests/spark/test_two.py", "import pytest\n@pytest.mark.chaos\ndef test_long(): pass\ndef test_short(): pass\n")
    tree.write("tests/spark/test_bad.py", "import no_module_of_this_name\n")
    code, said = tree.run("--tier", "chaos")
    assert (code, said.splitlines()[-1]) == (0, "1 passed, 0 failed, 0 skipped"), said
    (tree.root / "tests/spark/test_bad.py").unlink()
    code, said = tree.run("--tier", "spark")
    assert (code, said.splitlines()[-1]) == (0, "2 passed, 0 failed, 0 skipped"), said


def test_files_without_tests_of_the_tier_are_not_read(tree: Tree) -> None:
    tree.write("tests/test_plain.py", "import nothing_of_this_name")
    code, said = tree.run("--tier", "spark")
    assert (code, said.splitlines()[-1]) == (0, "1 passed, 0 failed, 0 skipped"), said


def test_a_marker_that_the_file_does_not_name_is_an_error(tree: Tree) -> None:
    """The run of its tier would not read the file, and no other one runs the test."""
    tree.write("tests/test_hidden.py", "import pytest\n@getattr(pytest.mark, 'spark')\ndef test_hidden(): pass\n")
    code, said = tree.run("--tier", "fast")
    assert code != 0
    assert "does not name pytest.mark.spark" in said


def test_a_marker_that_contradicts_the_folder_is_an_error(tree: Tree) -> None:
    tree.write("tests/emulated/test_other.py", "import pytest\n@pytest.mark.fast\ndef test_other(): pass\n")
    code, said = tree.run("--tier", "emulated")
    assert code == 1
    assert "is in several tiers: emulated, fast" in said


def test_a_test_in_two_tiers_is_an_error(tree: Tree) -> None:
    tree.write("tests/test_both.py", "import pytest\n@pytest.mark.spark\n@pytest.mark.kube\ndef test_both(): pass\n")
    code, said = tree.run("--tier", "spark")
    assert code == 1
    assert "is in several tiers: kube, spark" in said


def test_pytest_gets_what_stands_after_the_dashes(tree: Tree) -> None:
    code, said = tree.run("--tier", "fast", "--tier", "spark", "--", "-k", "one or marked", "-v")
    assert code == 0
    assert "test_plain.py::test_one PASSED" in said
    assert said.splitlines()[-1] == "2 passed, 0 failed, 0 skipped"


def test_the_tiers_are_listed_without_running(tree: Tree) -> None:
    code, said = tree.run("--list")
    assert code == 0
    assert [line.split()[0] for line in said.splitlines()] == [
        "fast",
        "spark",
        "executors",
        "emulated",
        "localstack",
        "kube",
        "pods",
        "chaos",
    ]
    assert [line.split()[0] for line in said.splitlines() if "by default" in line] == ["fast", "spark", "emulated"]


@pytest.mark.parametrize("arguments", [["--tier", "slow"], ["--tier", "fast,"], ["--frob"], ["--tier"]])
def test_a_wrong_option_is_an_error_with_the_ones_there_are(tree: Tree, arguments: list[str]) -> None:
    code, said = tree.run(*arguments)
    assert code == 2
    assert said.startswith("error[TOOL-021]: invalid option\n")
    assert "  fix  ./scripts/test --" in said


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["ctrl-c", "kill"])
@pytest.mark.parametrize("environment", [{}, TWO_CORES], ids=["one core", "two cores"])
def test_an_interrupted_run_cleans_up_after_its_tests_and_starts_no_other_tier(
    tree: Tree, tmp_path: Path, number: signal.Signals, code: int, environment: dict[str, str]
) -> None:
    started, cleaned = tmp_path / "started", tmp_path / "cleaned"
    tree.write(
        "tests/test_long.py",
        "import pathlib, pytest, threading\n"
        f"@pytest.fixture\ndef held():\n    yield\n    pathlib.Path({str(cleaned)!r}).touch()\n"
        # Not in the fixture: interrupted before its yield, it would have nothing to clean up.
        f"def test_long(held):\n    pathlib.Path({str(started)!r}).touch()\n    threading.Event().wait(60)\n",
    )
    process = tree.start(environment=environment)
    limit = time.monotonic() + 30
    while not started.exists():
        assert process.poll() is None and time.monotonic() < limit
        time.sleep(0.02)
    process.send_signal(number)
    said, _ = process.communicate(timeout=30)
    assert process.returncode == code, said
    assert cleaned.exists()
    assert "== spark" not in said


def test_a_tier_that_waits_has_its_own_number_of_workers_unless_the_user_says_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTEST_XDIST_AUTO_NUM_WORKERS", raising=False)
    assert tiers._environment(["emulated"])["PYTEST_XDIST_AUTO_NUM_WORKERS"] == "4"
    assert "PYTEST_XDIST_AUTO_NUM_WORKERS" not in tiers._environment(["fast"])
    monkeypatch.setenv("PYTEST_XDIST_AUTO_NUM_WORKERS", "1")
    assert tiers._environment(["emulated"])["PYTEST_XDIST_AUTO_NUM_WORKERS"] == "1"
