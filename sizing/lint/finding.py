"""A finding: one problem reported by a rule, in the user's terms."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from penstock.sizing.errors import Place

# error: does not work, or causes harm; warning: works, but causes problems; info: good to know.
Severity = Literal["error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")


class Finding(BaseModel):
    """One finding.

    Args:
        rule: the rule's id, ``LINT-001``.
        severity: severity; a rule may lower it in some cases.
        title: the rule's description of the problem.
        why: the consequence.
        given: the current value.
        need: the allowed or required value.
        fix: how to fix it.
        path: the field, as a dotted path in its document.
        at: file and line, if known.
    """

    model_config = ConfigDict(frozen=True)

    rule: str
    severity: Severity
    title: str
    why: str
    given: str
    need: str
    fix: str
    path: str
    at: Place | None = None

    def as_json(self) -> dict[str, str | int | None]:
        """The finding as a JSON object: the keys of an error's JSON and those of the rule."""
        return {
            "rule": self.rule,
            "severity": self.severity,
            "title": self.title,
            "file": self.at.file if self.at else None,
            "line": self.at.line if self.at else None,
            "column": self.at.column if self.at else None,
            "path": self.path,
            "given": self.given,
            "need": self.need,
            "fix": self.fix,
            "why": self.why,
        }
