"""Runs all rules."""

from __future__ import annotations

from collections.abc import Collection

from penstock.sizing.lint import jobs, manifests, node_pools, pod_shape, pods, spark_conf, versions
from penstock.sizing.lint.finding import SEVERITIES, Finding
from penstock.sizing.lint.rule import Rule, rules_of
from penstock.sizing.lint.subject import Subject

_FOUND = [found for module in (node_pools, pods, manifests, spark_conf, jobs, pod_shape, versions) for found in rules_of(module)]
# All rules, by id.
RULES: dict[str, Rule] = {found.id: found for found in sorted(_FOUND, key=lambda found: found.id)}


def lint(subject: Subject, ignore: Collection[str] = ()) -> tuple[Finding, ...]:
    """Runs the rules.

    Args:
        subject: the configuration to lint.
        ignore: ids of rules to skip.

    Returns:
        Findings by file and line, the most severe of a line first.
    """
    findings = [finding for rule in RULES.values() if rule.id not in ignore for finding in rule.findings(subject)]
    return tuple(sorted(dict.fromkeys(findings), key=_order))


def _order(finding: Finding) -> tuple[str, int, str, int, str]:
    at = finding.at
    return (at.file if at else "", (at.line or 0) if at else 0, finding.path, SEVERITIES.index(finding.severity), finding.rule)
