"""A rule: title, severity, consequence and fix, and the function that detects its faults."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import NamedTuple

from penstock.sizing.lint.finding import Finding, Severity
from penstock.sizing.lint.subject import Subject, Where


class Fault(NamedTuple):
    """One place that violates a rule.

    Args:
        where: the field.
        given: the current value.
        need: the allowed or required value.
        fix: how to fix it here; empty: the rule's fix.
        severity: None: the rule's.
    """

    where: Where
    given: str
    need: str
    fix: str = ""
    severity: Severity | None = None


class Rule(NamedTuple):
    """A rule.

    Args:
        id: stable id, ``LINT-001``.
        severity: severity of its findings, unless a finding lowers it.
        title: the problem.
        why: the consequence.
        fix: how to fix it.
        source: the facts behind it.
        faults: detects its violations.
    """

    id: str
    severity: Severity
    title: str
    why: str
    fix: str
    source: str
    faults: Callable[[Subject], Iterable[Fault]]

    def findings(self, subject: Subject) -> list[Finding]:
        """All findings of the rule."""
        return [
            Finding(
                rule=self.id,
                severity=fault.severity or self.severity,
                title=self.title,
                why=self.why,
                given=fault.given,
                need=fault.need,
                fix=fault.fix or self.fix,
                path=fault.where.path,
                at=fault.where.at,
            )
            for fault in self.faults(subject)
        ]


def rule(id: str, severity: Severity, title: str, *, why: str, fix: str) -> Callable[[Callable[[Subject], Iterable[Fault]]], Rule]:
    """Makes a rule of a function that yields its faults; the function's docstring is the source of the rule's facts."""

    def make(faults: Callable[[Subject], Iterable[Fault]]) -> Rule:
        return Rule(id, severity, title, why, fix, " ".join((inspect.getdoc(faults) or "").split()), faults)

    return make


def rules_of(module: ModuleType) -> tuple[Rule, ...]:
    """The rules of a module, by id."""
    return tuple(sorted((value for value in vars(module).values() if isinstance(value, Rule)), key=lambda each: each.id))
