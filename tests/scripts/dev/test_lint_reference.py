"""The page of all the rules of lint."""

from __future__ import annotations

from penstock.scripts.dev.lint_reference import rendered
from penstock.scripts.layout import ROOT
from penstock.sizing.lint.lint import RULES

PAGE = ROOT / "docs/lint.md"


def test_the_committed_page_is_that_of_the_rules() -> None:
    assert PAGE.read_text("utf-8") == rendered(), "out of date; write it again, see CONTRIBUTING.md"


def test_every_rule_stands_in_the_page_once_with_its_source() -> None:
    lines = rendered().splitlines()
    for name in RULES:
        assert sum(line.startswith(f"| {name} |") for line in lines) == 1
        assert sum(line.startswith(f"- {name}: ") for line in lines) == 1
