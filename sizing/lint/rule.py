"""A rule: what is wrong, how bad it is, why, and what to do; and the function that finds it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import NamedTuple

from penstock.sizing.lint.finding import Finding, Severity
from penstock.sizing.lint.subject import Subject, Where


class Fault(NamedTuple):
    """One place where a rule does not hold.

    Args:
        where: the field.
        given: what stands there.
        need: what is allowed or required.
        fix: what to do here; empty: what the rule says.
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
        id: stable, ``LINT-001``.
        severity: of its findings, unless one is milder.
        title: what is wrong.
        why: what comes of it.
        fix: what to do.
        source: the facts behind it.
        faults: finds them.
    """

    id: str
    severity: Severity
    title: str
    why: str
    fix: str
    source: str
    faults: Callable[[Subject], Iterable[Fault]]

    def findings(self, subject: Subject) -> list[Finding]:
        """All that the rule finds."""
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
    """Makes a rule of the function that finds its faults; the function's docstring is the source of its facts."""

    def make(faults: Callable[[Subject], Iterable[Fault]]) -> Rule:
        return Rule(id, severity, title, why, fix, " ".join((inspect.getdoc(faults) or "").split()), faults)

    return make


def rules_of(module: ModuleType) -> tuple[Rule, ...]:
    """The rules of a module, by their ids."""
    return tuple(sorted((value for value in vars(module).values() if isinstance(value, Rule)), key=lambda found: found.id))
