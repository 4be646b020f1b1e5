"""``./scripts/chaos``: the faults that it knows, and what it shows of a run of pytest."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.scripts import layout
from penstock.scripts.dev import chaos
from penstock.scripts.dev.chaos import FAULTS, Result
from penstock.scripts.render.screen import Screen

_SAMPLE = """
from tests.chaos.ledger import Ledger
from collections import Counter

def test_one(request):
    ledger = Ledger(request.node.user_properties)
    ledger.times(2)
    ledger.compared(["a", "b", "c"], Counter({"a": 1, "b": 3}))
    ledger.recovered(1.0, 2.0)
    ledger.recovered(4.0)

def test_two():
    assert not "this fails"
"""


@pytest.mark.parametrize("test", [test for fault in FAULTS.values() for test in fault.tests])
def test_each_test_of_a_fault_exists(test: str) -> None:
    file, _, name = test.partition("::")
    tree = ast.parse((layout.ROOT / file).read_text(encoding="utf-8"))
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert not name or name in functions


def test_the_sinks_that_must_be_caught_come_first() -> None:
    assert next(iter(FAULTS)) == "bad-sinks"


def test_what_a_test_has_counted_is_read_from_its_report(tmp_path: Path) -> None:
    (tmp_path / "test_sample.py").write_text(_SAMPLE)
    report = tmp_path / "report.xml"
    options = ["-q", "-c", "/dev/null", "-p", "no:cacheprovider", f"--rootdir={tmp_path}", f"--junitxml={report}"]
    command = [sys.executable, "-m", "pytest", *options, str(tmp_path / "test_sample.py")]
    subprocess.run(command, env={"PYTHONPATH": str(layout.ROOT)}, check=False, capture_output=True)
    result = Result.of(report, took_s=7.0)
    assert (result.tests, result.failed, result.passed) == (2, ("test_two",), False)
    assert (result.times, result.rows, result.lost, result.doubled) == (2, 3, 1, 2)
    assert (result.recovered_s, result.planned_s) == ((1.0, 4.0), (2.0,))
    shown = chaos.rendered({"s3-hangs": result}, Screen(width=160, colour=False))
    words = "s3-hangs writes to S3 that hang and arrive late 2 3 1 2 2.5 s 2.0 s 7 s FAILED"
    assert shown.splitlines()[-1].split() == words.split()


def test_an_unknown_fault_is_refused_with_those_that_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert chaos.main(["--fault", "driver-points,flood"]) == 2
    error = capsys.readouterr().err
    assert "flood" in error and "broker-away" in error


def test_the_faults_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert chaos.main(["--list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(FAULTS)
