"""Findings as people read them: by file, each with its line, why it matters and what to do; and the rules as a table."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from itertools import groupby

from penstock.sizing.lint.finding import SEVERITIES, Finding
from penstock.sizing.lint.rule import Rule

WIDTH = 100
_INDENT = " " * 7


def render(findings: Sequence[Finding], looked_at: str) -> str:
    """The findings, and how many there are of each kind.

    Args:
        findings: in the order of their files.
        looked_at: what was linted, in words.
    """
    lines: list[str] = []
    told: set[str] = set()
    for file, group in groupby(findings, key=lambda finding: finding.at.file if finding.at else ""):
        lines.append(file or "without a file")
        for finding in group:
            # Once is enough for the reason of a rule.
            lines += _lines(finding, tell_why=finding.rule not in told)
            told.add(finding.rule)
        lines.append("")
    return "\n".join([*lines, f"{counts(findings)} in {looked_at}"]) + "\n"


def counts(findings: Sequence[Finding]) -> str:
    """How many findings there are: ``2 errors, 1 warning``."""
    numbers = {severity: sum(finding.severity == severity for finding in findings) for severity in SEVERITIES}
    plural = {"error": "errors", "warning": "warnings", "info": "hints"}
    one = {"error": "error", "warning": "warning", "info": "hint"}
    told = [f"{number} {one[severity] if number == 1 else plural[severity]}" for severity, number in numbers.items() if number]
    return ", ".join(told) or "no findings"


def render_rules(rules: Iterable[Rule]) -> str:
    """All the rules as people read them."""
    lines: list[str] = []
    for rule in rules:
        lines += [f"{rule.id}  {rule.severity:<7}  {rule.title}", *_labelled("why", rule.why), *_labelled("fix", rule.fix), ""]
    return "\n".join(lines)


def _lines(finding: Finding, *, tell_why: bool) -> list[str]:
    line = f"{finding.at.line}" if finding.at and finding.at.line else ""
    return [
        f"{line:>5}  {finding.severity}[{finding.rule}]: {finding.title}",
        *_labelled("at", finding.path),
        *_labelled("is", finding.given),
        *_labelled("need", finding.need),
        *_labelled("why", finding.why if tell_why else ""),
        *_labelled("fix", finding.fix),
    ]


def _labelled(label: str, text: str) -> list[str]:
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=f"{_INDENT}{label:<5}",
        subsequent_indent=_INDENT + " " * 5,
        break_long_words=False,
        break_on_hyphens=False,
    )
