"""``penstock report``: which file it writes, what it prints, and what it refuses."""

from __future__ import annotations

import argparse
from html.parser import HTMLParser
from pathlib import Path

import pytest

from penstock.scripts.cli import report
from penstock.scripts.errors import NoPage, ReportNotWritten
from tests.infra.environments import BARE
from tests.scripts.planned_samples import SPEC

TOO_LARGE = """\
apiVersion: penstock/v1
kind: StreamingJob
metadata: {name: whale}
spec:
  app: app
  parallelism: 4
  executor: {slots: 4, cores: 4, memory: 4000g}
"""


def run(*words: str) -> int:
    parser = argparse.ArgumentParser()
    report.add_arguments(parser)
    return report.run(parser.parse_args(words))


def test_the_page_lies_in_the_current_folder_under_the_jobs_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(str(SPEC)) == 0
    assert capsys.readouterr().out == "user-credit-report.html\n"
    text = (tmp_path / "user-credit-report.html").read_text(encoding="utf-8")
    HTMLParser().feed(text)
    for word in ("user-credit", "Environment production, us-east-1", "pool executors", "USD a month", "spec.load"):
        assert word in text


def test_the_same_spec_gives_the_same_bytes(tmp_path: Path) -> None:
    first, second = tmp_path / "first.html", tmp_path / "second.HTML"
    assert run(str(SPEC), "--out", str(first)) == run(str(SPEC), "--out", str(second)) == 0
    assert first.read_bytes() == second.read_bytes()


def test_a_spec_with_a_load_has_curves(tmp_path: Path) -> None:
    spec = tmp_path / "clicks.yaml"
    (tmp_path / "app.py").write_text("OPERATORS = 2\n")
    spec.write_text(
        "apiVersion: penstock/v1\nkind: StreamingJob\nmetadata: {name: clicks}\nspec:\n  app: app\n"
        "  load: {eventsPerSecond: 9000, eventBytes: 600, eventsPerSlot: 2000}\n"
        "  executor: {slots: 4, cores: 4}\n  sources:\n    a: {kafka: {topic: clicks}}\n"
    )
    out = tmp_path / "clicks.html"
    assert run(str(spec), "--out", str(out)) == 0
    assert out.read_text().count('class="chart"') == 2


def test_an_infeasible_plan_has_a_page_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "app.py").write_text("OPERATORS = 2\n")
    (tmp_path / "whale.yaml").write_text(TOO_LARGE)
    out = tmp_path / "whale.html"
    assert run(str(tmp_path / "whale.yaml"), "--out", str(out)) == 3
    assert "error[SIZ-" in capsys.readouterr().err
    text = out.read_text()
    for word in ("not feasible", "at least ", "Pods without a node are not included in the cost.", "1 executor without a node"):
        assert word in text


def test_an_environment_without_a_cluster_leaves_nodes_and_cost_out(tmp_path: Path) -> None:
    out = tmp_path / "local.html"
    assert run(str(SPEC), "--environment", BARE, "--out", str(out)) == 0
    assert out.read_text().count('class="missing"') >= 2


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ReportNotWritten) as caught:
        run(str(SPEC), "--out", str(tmp_path / "nowhere" / "page.html"))
    assert caught.value.code == "USE-040"
    assert "No such file or directory" in caught.value.need


def test_a_file_that_is_no_page_is_left_alone(tmp_path: Path) -> None:
    spec = tmp_path / "user_credit.yaml"
    spec.write_text(SPEC.read_text())
    with pytest.raises(NoPage) as caught:
        run(str(SPEC), "--out", str(spec))
    assert caught.value.code == "USE-041"
    assert spec.read_text() == SPEC.read_text()


def test_text_that_utf8_does_not_have_is_written_as_an_escape(tmp_path: Path) -> None:
    report.write(tmp_path / "page.html", "a \udc80 path")
    assert (tmp_path / "page.html").read_text() == "a \\udc80 path"
