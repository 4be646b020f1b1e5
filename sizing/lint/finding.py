"""A finding: one thing that a rule has found, in the terms of the person who has to mend it."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from penstock.sizing.errors import Place

# error: it will not work, or harm; warning: it works and will hurt; info: good to know.
Severity = Literal["error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")


class Finding(BaseModel):
    """One finding.

    Args:
        rule: the rule's id, ``LINT-001``.
        severity: how bad it is; a rule may be milder in some cases.
        title: what is wrong, as the rule says it.
        why: what comes of it.
        given: what stands there.
        need: what is allowed or required.
        fix: what to do.
        path: the field, as a dotted path in its document.
        at: file and line, where there is one.
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
        """The finding as programs read it; the keys of an error's JSON, with the rule's beside them."""
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
