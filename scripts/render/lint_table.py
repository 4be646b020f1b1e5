"""Findings by file, each with its line, the reason and the fix; and the rules as a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from penstock.scripts.render.screen import Screen
from penstock.scripts.render.table import Column, Row, Styled, facts, table
from penstock.sizing.lint.finding import SEVERITIES, Finding
from penstock.sizing.lint.rule import Rule

# Indentation of a finding's facts: below its severity.
_INDENT = 7
_STYLES = {"error": "red", "warning": "yellow", "info": "cyan"}


def render(findings: Sequence[Finding], looked_at: str, screen: Screen) -> str:
    """The findings, and how many there are of each kind.

    Args:
        findings: in the order of their files.
        looked_at: what was linted, in words.
        screen: where they go.
    """
    lines: list[str] = []
    explained: set[str] = set()
    for file, group in groupby(findings, key=lambda finding: finding.at.file if finding.at else ""):
        lines.append(file or "no file")
        for finding in group:
            # The reason of a rule is printed once.
            lines += _lines(finding, screen, with_why=finding.rule not in explained)
            explained.add(finding.rule)
        lines.append("")
    return "\n".join([*lines, f"{counts(findings)} in {looked_at}"]) + "\n"


def counts(findings: Sequence[Finding]) -> str:
    """The number of findings: ``2 errors, 1 warning``."""
    numbers = {severity: sum(finding.severity == severity for finding in findings) for severity in SEVERITIES}
    plural = {"error": "errors", "warning": "warnings", "info": "hints"}
    one = {"error": "error", "warning": "warning", "info": "hint"}
    words = [f"{number} {one[severity] if number == 1 else plural[severity]}" for severity, number in numbers.items() if number]
    return ", ".join(words) or "no findings"


def render_rules(rules: Iterable[Rule], screen: Screen) -> str:
    """All the rules as a table."""
    columns = (Column("rule"), Column("severity"), Column("title, why it matters, fix", wraps=True))
    rows = [row for rule in rules for row in _rule_rows(rule)][:-1]
    return "\n".join(table(columns, rows, screen._replace(width=screen.prose), indent=0)) + "\n"


def _rule_rows(rule: Rule) -> Iterator[Row]:
    yield rule.id, Styled(rule.severity, _STYLES[rule.severity]), Styled(rule.title, "bold")
    yield "", "", rule.why
    yield "", "", f"fix: {rule.fix}"
    yield "", "", ""


def _lines(finding: Finding, screen: Screen, *, with_why: bool) -> list[str]:
    line = f"{finding.at.line}" if finding.at and finding.at.line else ""
    every = {"at": finding.path, "is": finding.given, "need": finding.need, "why": finding.why if with_why else "", "fix": finding.fix}
    shown = [(label, text) for label, text in every.items() if text]
    return [f"{line:>5}  {finding.severity}[{finding.rule}]: {finding.title}", *facts(shown, screen, indent=_INDENT)]
