"""The tutorials: all of them are linked, and plans are those that the pages show. tests/jobs/spark/test_tutorials.py runs them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from penstock.scripts.layout import ROOT
from tests.docs import tutorials
from tests.docs.test_documents import _blocks
from tests.scripts.cli.called import penstock


def test_every_page_about_another_engine_is_a_known_tutorial_and_linked() -> None:
    pages = {path.stem for path in (ROOT / "docs/tutorials").glob("from-*.md")}
    assert pages == set(tutorials.JOBS)
    for linking in ("README.md", "docs/own-repository.md"):
        text = (ROOT / linking).read_text(encoding="utf-8")
        assert [name for name in sorted(pages) if f"tutorials/{name}.md)" not in text] == [], linking


@pytest.mark.parametrize("name", tutorials.JOBS)
def test_the_plan_that_a_page_shows_is_the_one_that_size_prints(name: str, tmp_path: Path) -> None:
    repository = tutorials.repository(name, tmp_path)
    sized = penstock("size", f"specs/{tutorials.JOBS[name]}.yaml", cwd=repository, environment=os.environ)
    assert sized.returncode == 0, sized.stderr
    (shown,) = _blocks(tutorials.page(name), "text")
    printed = sized.stdout.splitlines()
    assert shown.splitlines() == printed[: len(shown.splitlines())]


@pytest.mark.parametrize("name", tutorials.JOBS)
def test_what_has_no_counterpart_is_said_before_the_job(name: str) -> None:
    text = tutorials.page(name).read_text(encoding="utf-8")
    headings = [line for line in text.splitlines() if line.startswith("## ")]
    assert headings[:2] == ["## What has no counterpart", "## The old job"]
    assert [word for word in ("checkpoint", "Delta Lake", "Iceberg", "Kinesis") if word not in text.split("## The old job")[0]] == []
