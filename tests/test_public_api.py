"""The names that ``import penstock`` offers."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

import penstock
from penstock.scripts.dev.api_reference import page_of, rendered, summary
from penstock.scripts.layout import ROOT


@pytest.mark.parametrize("name", penstock.__all__)
def test_a_name_is_there_and_says_what_it_is_and_its_page_shows_it(name: str) -> None:
    assert getattr(penstock, name) is not None
    assert re.fullmatch(r"[A-Z`].{10,}\.", summary(name), re.DOTALL), summary(name)
    assert re.search(rf"\b{name}\b", (ROOT / "docs" / page_of(name)).read_text("utf-8")), f"docs/{page_of(name)} does not show {name}"


def test_the_committed_page_is_that_of_the_names() -> None:
    assert (ROOT / "docs/api.md").read_text("utf-8") == rendered(), "out of date; write it again, see CONTRIBUTING.md"


def test_importing_it_loads_neither_spark_nor_pydantic() -> None:
    code = "import sys, penstock; print([name for name in ('pyspark', 'pydantic', 'boto3', 'penstock.jobs') if name in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    assert ran.stdout.strip() == "[]"


def test_a_name_that_is_not_offered_is_refused() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'tumble'"):
        penstock.tumble  # noqa: B018


@pytest.mark.parametrize("name", ["sizing", "jobs", "infra", "scripts", "testing"])
def test_a_folder_of_ours_refuses_its_bare_name(name: str) -> None:
    ran = subprocess.run([sys.executable, "-c", f"import {name}"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 1
    assert f"import penstock.{name}" in ran.stderr
