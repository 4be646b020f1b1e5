"""Rules on NodePools."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.sizing.lint.subject import LintedPool
from tests.sizing.lint.worlds import (
    ARCH,
    BOTH,
    CAPACITY,
    CATEGORY,
    CPU,
    FAMILY,
    ON_DEMAND,
    SPOT,
    TYPE,
    found,
    needs,
    pods,
    pool,
    severities,
    subject,
)

M = needs(CATEGORY, "In", "m")
ZONE = "topology.kubernetes.io/zone"


def of(rule: str, *pools: LintedPool) -> list[str]:
    return [finding.given for finding in found(rule, subject(pools=pools))]


@pytest.mark.parametrize(
    "requirements",
    [
        (needs(CPU, "Gt", "16"), needs(CPU, "Lt", "8")),
        (needs(CPU, "Gt", "7"), needs(CPU, "Lt", "8")),
        (needs(CPU, "Gte", "16"), needs(CPU, "In", "4", "8")),
        (needs(FAMILY, "In", "m5"), needs(FAMILY, "In", "m6i")),
        (needs(FAMILY, "In", "m5"), needs(FAMILY, "NotIn", "m5")),
        (needs("team", "Exists"), needs("team", "DoesNotExist")),
        (needs("beta.kubernetes.io/arch", "In", "arm64"), needs(ARCH, "In", "amd64")),
    ],
)
def test_requirements_on_a_label_that_exclude_each_other_are_found(requirements: tuple[dict[str, Any], ...]) -> None:
    linted = pool("p", *requirements)
    assert len(of("LINT-004", linted)) == 1
    assert of("LINT-005", linted) == [], "one finding for one fault"


@pytest.mark.parametrize(
    "requirements",
    [
        (M,),
        (needs(CPU, "Gt", "4"), needs(CPU, "Lt", "16")),
        (needs(CPU, "Gt", "4"), needs(CPU, "In", "4", "8")),
        (needs(FAMILY, "In", "m5", "m6i"), needs(FAMILY, "In", "m6i", "m7i")),
        (needs(FAMILY, "NotIn", "m5"), needs(FAMILY, "NotIn", "m6i")),
        (needs("team", "NotIn", "a"), needs("team", "DoesNotExist")),
    ],
)
def test_requirements_that_meet_are_left_alone(requirements: tuple[dict[str, Any], ...]) -> None:
    assert of("LINT-004", pool("p", *requirements)) == of("LINT-005", pool("p", *requirements)) == []


def test_a_label_of_the_pools_own_nodes_counts_as_a_requirement() -> None:
    assert of("LINT-004", pool("p", needs("team", "In", "b"), labels={"team": "a"})) == ["p: team In [b] and the label team: a"]
    assert of("LINT-004", pool("p", needs("team", "In", "a"), labels={"team": "a"})) == []


def test_requirements_that_leave_no_instance_type_are_found_with_those_that_decide() -> None:
    linted = pool("p", needs(ARCH, "In", "arm64"), needs(FAMILY, "In", "m5", "m6i"), needs(CPU, "In", "8"))
    assert of("LINT-005", linted) == [f"p: {ARCH} In [arm64] and {FAMILY} In [m5, m6i]"]


def test_where_no_single_requirement_decides_all_of_them_are_named() -> None:
    linted = pool("p", needs(ARCH, "In", "arm64"), needs(FAMILY, "In", "m5"), needs(CPU, "In", "3"))
    assert of("LINT-005", linted) == [f"p: {ARCH} In [arm64] and {FAMILY} In [m5] and {CPU} In [3]"]


@pytest.mark.parametrize(
    ("key", "value", "fix"),
    [
        (FAMILY, "m5dd", "did you mean m5d?"),
        (TYPE, "m5.3xlarge", "did you mean m5.xlarge?"),
        (TYPE, "m6gd.8xlarg", "did you mean m6gd.8xlarge?"),
        (CATEGORY, "mm", "did you mean m?"),
        (ARCH, "x86_64", "use an existing value"),
        (ARCH, "amd", "did you mean amd64?"),
        ("karpenter.k8s.aws/instance-size", "xlarg", "did you mean xlarge?"),
        (ZONE, "us-east-1z", "did you mean us-east-1c?"),
        (ZONE, "us-east-1d", "did you mean us-east-1c?"),
    ],
)
def test_a_value_that_no_instance_type_has_is_found_with_the_nearest_one(key: str, value: str, fix: str) -> None:
    (finding,) = found("LINT-006", subject(pools=(pool("p", needs(key, "In", value)),)))
    assert (finding.severity, finding.fix) == ("error", fix)


def test_an_unknown_value_is_found_beside_good_ones_and_in_not_in() -> None:
    assert of("LINT-006", pool("p", needs(FAMILY, "In", "m5", "m5zz"))) == [f"p: {FAMILY} m5zz"]
    assert of("LINT-006", pool("p", needs(FAMILY, "NotIn", "t22"))) == [f"p: {FAMILY} t22"]


def test_a_generation_newer_than_the_catalog_is_a_warning_only() -> None:
    assert severities("LINT-006", subject(pools=(pool("p", needs(FAMILY, "In", "r99g")),))) == ["warning"]
    assert severities("LINT-006", subject(pools=(pool("p", needs("karpenter.k8s.aws/instance-generation", "In", "99")),))) == ["warning"]
    assert severities("LINT-006", subject(pools=(pool("p", needs(FAMILY, "In", "r5zz")),))) == ["error"]


def test_values_that_exist_and_labels_of_ones_own_are_left_alone() -> None:
    linted = pool("p", needs(FAMILY, "In", "m5"), needs("team", "In", "anything"), BOTH, needs("kubernetes.io/os", "In", "windows"))
    assert of("LINT-006", linted) == []


def test_a_value_in_a_pods_selector_is_looked_at_too() -> None:
    linted = subject(pods=(pods("executor", {TYPE: "m5.3xlarge"}), pods("driver", {TYPE: "m5.xlarge"})))
    assert [finding.given for finding in found("LINT-006", linted)] == [f"the executor: {TYPE} m5.3xlarge"]


def test_an_invalid_label_value_in_a_pods_selector_is_reported_as_any_other_value() -> None:
    linted = subject(pods=(pods("executor", {TYPE: "-2.5", "team": "-2.5"}),))
    assert [finding.given for finding in found("LINT-006", linted)] == [f"the executor: {TYPE} -2.5"]


def test_min_values_above_what_is_left_are_found() -> None:
    assert len(of("LINT-007", pool("p", M, needs(FAMILY, "In", "m5", "m6i", "nope", minValues=3)))) == 1
    assert of("LINT-007", pool("p", M, needs(FAMILY, "In", "m5", "m6i", minValues=2))) == []


def test_a_spot_pool_with_few_types_is_found() -> None:
    few = needs(TYPE, "In", "m5.xlarge", "m6i.xlarge", "m7i.xlarge", "r5.xlarge")
    assert of("LINT-008", pool("p", few, SPOT)) == ["p: 4 instance types"]
    assert of("LINT-008", pool("p", few, BOTH)) == [], "it falls back on on-demand"
    assert of("LINT-008", pool("p", few, ON_DEMAND)) == []
    assert of("LINT-008", pool("p", M, SPOT)) == []


def test_a_spot_pool_that_cannot_replace_spot_by_spot_is_reported() -> None:
    some = needs(TYPE, "In", *(f"{family}.xlarge" for family in ("m5", "m6i", "m7i", "r5", "r6i", "r7i")))
    assert of("LINT-009", pool("p", some, SPOT)) == ["p: 6 instance types"]
    assert of("LINT-009", pool("p", some, SPOT, disruption={"consolidationPolicy": "WhenEmpty", "consolidateAfter": "5m"})) == []
    assert of("LINT-009", pool("p", M, SPOT)) == []


def test_missing_limits_are_found() -> None:
    assert of("LINT-010", pool("p", M)) == ["p: no limits"]
    assert of("LINT-010", pool("p", M, limits={"cpu": "64"})) == []


def test_missing_disruption_budgets_are_found() -> None:
    assert of("LINT-011", pool("p", M), pool("q", M, disruption={"consolidateAfter": "0s"})) == ["p: no budgets", "q: no budgets"]
    assert of("LINT-011", pool("p", M, disruption={"budgets": [{"nodes": "1"}], "consolidateAfter": "5m"})) == []


@pytest.mark.parametrize(
    ("disruption", "fires"),
    [
        (None, True),
        ({"consolidateAfter": "0s"}, True),
        ({"consolidateAfter": "30s", "consolidationPolicy": "Balanced"}, True),
        ({"consolidateAfter": "5m"}, False),
        ({"consolidateAfter": "Never"}, False),
        ({"consolidateAfter": "0s", "consolidationPolicy": "WhenEmpty"}, False),
    ],
)
def test_consolidation_at_once_is_found(disruption: dict[str, Any] | None, fires: bool) -> None:
    linted = pool("p", M, **({"disruption": disruption} if disruption else {}))
    assert bool(of("LINT-012", linted)) is fires


def test_consolidation_of_a_pool_where_no_job_runs_is_left_alone() -> None:
    jobs, web = pool("jobs", M, labels={"for": "jobs"}, disruption={"consolidateAfter": "5m"}), pool("web", M, labels={"for": "web"})
    assert found("LINT-012", subject(pools=(jobs, web), pods=(pods("executor", {"for": "jobs"}),))) == []
    assert len(found("LINT-012", subject(pools=(jobs, web), pods=(pods("executor", {"for": "web"}),)))) == 1


def test_a_pool_that_may_give_both_architectures_is_found() -> None:
    both, one = pool("p", M), pool("p", M, needs(ARCH, "In", "amd64"))
    assert of("LINT-013", both) == ["p: amd64 and arm64"]
    assert of("LINT-013", one) == []
    assert of("LINT-013", pool("p", needs(FAMILY, "In", "m5", "m6i"))) == [], "these families have one"
    assert of("LINT-013", pool("p", M, needs(ARCH, "In", "amd64", "arm64"))) == [], "that is said on purpose"
    assert found("LINT-013", subject(pools=(both,), pods=(pods("executor", {ARCH: "arm64"}),))) == [], "the pods choose"


@pytest.mark.parametrize(
    ("expire_after", "fires"), [("2h", True), ("23h59m", True), ("24h", False), ("720h", False), ("Never", False), (None, False)]
)
def test_nodes_that_expire_within_a_day_are_found(expire_after: str | None, fires: bool) -> None:
    linted = pool("p", M, **({"expireAfter": expire_after} if expire_after else {}))
    assert bool(of("LINT-014", linted)) is fires


def test_a_capacity_type_that_does_not_exist_is_rejected_before_any_rule() -> None:
    with pytest.raises(ValueError, match="at least one of on-demand, reserved, spot"):
        pool("p", needs(CAPACITY, "In", "ondemand"))
    assert of("LINT-006", pool("p", needs(CAPACITY, "In", "spot", "ondemand"))) == [f"p: {CAPACITY} ondemand"]
