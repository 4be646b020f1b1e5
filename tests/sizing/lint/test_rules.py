"""All rules together."""

from __future__ import annotations

import re

from penstock.sizing.errors import Place
from penstock.sizing.lint import jobs, manifests, node_pools, pod_shape, pods, spark_conf, versions
from penstock.sizing.lint.lint import RULES, lint
from penstock.sizing.lint.rule import rules_of
from penstock.sizing.lint.subject import Where
from tests.sizing.lint.worlds import CATEGORY, found, needs, pool, subject

MODULES = (node_pools, pods, manifests, spark_conf, jobs, pod_shape, versions)


def test_no_id_stands_for_two_rules() -> None:
    assert len(RULES) == sum(len(rules_of(module)) for module in MODULES) > 40
    assert list(RULES) == sorted(RULES)


def test_every_rule_has_an_id_a_reason_a_fix_and_a_source() -> None:
    for name, rule in RULES.items():
        assert re.fullmatch(r"LINT-0[0-9]{2}", name) and name == rule.id
        assert rule.title and rule.why and rule.fix
        assert rule.source.startswith("Source: "), name


def test_findings_come_in_the_order_of_the_lines_and_ignored_rules_do_not_come() -> None:
    late = pool("late", needs(CATEGORY, "In", "m")).model_copy(update={"where": Where(path="b", at=Place(file="f", line=9))})
    early = pool("early", needs(CATEGORY, "In", "m")).model_copy(update={"where": Where(path="a", at=Place(file="f", line=1))})
    findings = lint(subject(pools=(late, early)))
    assert [finding.at.line for finding in findings if finding.at] == sorted(finding.at.line or 0 for finding in findings if finding.at)
    left = {finding.rule for finding in findings}
    assert {finding.rule for finding in lint(subject(pools=(late, early)), {"LINT-010"})} == left - {"LINT-010"}


def test_an_empty_subject_has_no_findings() -> None:
    assert lint(subject()) == ()


def test_a_finding_is_json_with_its_place() -> None:
    linted = pool("p", needs(CATEGORY, "In", "m")).model_copy(
        update={"where": Where(path="spec", at=Place(file="f.yaml", line=3, column=1))}
    )
    (finding,) = found("LINT-010", subject(pools=(linted,)))
    document = finding.as_json()
    assert (document["rule"], document["severity"], document["file"], document["line"], document["path"]) == (
        "LINT-010",
        "warning",
        "f.yaml",
        3,
        "spec",
    )
    assert list(document) == ["rule", "severity", "title", "file", "line", "column", "path", "given", "need", "fix", "why"]
