"""Rules on pod scheduling."""

from __future__ import annotations

import pytest

from penstock.sizing.lint.subject import LintedBudget
from penstock.sizing.placement.pod_manifests import NodeSelectorTerm
from tests.sizing.lint.worlds import (
    ARCH,
    BOTH,
    CAPACITY,
    CATEGORY,
    FAMILY,
    ON_DEMAND,
    SPOT,
    TAINT,
    TOLERATION,
    found,
    needs,
    pods,
    pool,
    severities,
    subject,
)

M = needs(CATEGORY, "In", "m")
CALM = {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "5m"}


def term(*expressions: dict[str, object]) -> NodeSelectorTerm:
    return NodeSelectorTerm.model_validate({"matchExpressions": list(expressions)})


def test_a_selector_that_no_pool_matches_is_found_as_in_known_examples() -> None:
    linted = subject(
        pools=(pool("spark-driver", M, labels={"NodeGroupType": "SparkDriver"}),),
        pods=(pods("driver", {"NodeGroupType": "SparkComputeOptimized"}),),
    )
    (finding,) = found("LINT-001", linted)
    assert finding.given == "the driver: NodeGroupType: SparkComputeOptimized"
    assert finding.need == "a NodePool with it: spark-driver has SparkDriver"


def test_a_label_that_no_pool_has_is_found_with_the_nearest_one() -> None:
    linted = subject(pools=(pool("p", M, labels={"penstock.dev/role": "driver"}),), pods=(pods("driver", {"penstock.dev/rol": "driver"}),))
    (finding,) = found("LINT-001", linted)
    assert finding.need.endswith("none has it")
    assert finding.fix == "did you mean penstock.dev/role?"


def test_a_value_is_found_with_the_nearest_one() -> None:
    linted = subject(pools=(pool("p", M, labels={"role": "executor"}),), pods=(pods("executor", {"role": "executors"}),))
    assert [finding.fix for finding in found("LINT-001", linted)] == ["did you mean executor?"]


def test_a_selector_that_leaves_no_instance_type_is_found() -> None:
    linted = subject(pools=(pool("p", needs(FAMILY, "In", "m5")),), pods=(pods("executor", {ARCH: "arm64"}),))
    assert len(found("LINT-001", linted)) == 1


def test_a_selector_on_what_instance_types_bring_is_left_alone() -> None:
    linted = subject(pools=(pool("p", M),), pods=(pods("executor", {FAMILY: "m5", ARCH: "amd64"}), pods("driver")))
    assert found("LINT-001", linted) == []


def test_of_the_terms_of_an_affinity_one_has_to_match() -> None:
    pools = (pool("p", M, labels={"team": "a"}),)
    none, one = term(needs("team", "In", "b")), term(needs("team", "In", "a"))
    assert found("LINT-001", subject(pools=pools, pods=(pods(terms=(none, one)),))) == []
    (finding,) = found("LINT-001", subject(pools=pools, pods=(pods(terms=(none,)),)))
    assert finding.given == "the executor: team In [b]"


def test_without_pools_scheduling_is_not_checked() -> None:
    linted = subject(pods=(pods("driver", {"team": "a"}),))
    assert [found(rule, linted) for rule in ("LINT-001", "LINT-002", "LINT-003", "LINT-020", "LINT-021")] == [[]] * 5


@pytest.mark.parametrize("label", ["eks.amazonaws.com/nodegroup", "kubernetes.io/hostname", "karpenter.sh/controller"])
def test_pods_that_select_other_nodes_than_karpenters_are_left_alone(label: str) -> None:
    linted = subject(pools=(pool("p", M, taints=(TAINT,)),), pods=(pods("other", {label: "x"}),))
    assert found("LINT-001", linted) == found("LINT-002", linted) == found("LINT-003", linted) == []


def test_pods_that_tolerate_the_taints_of_no_pool_are_found() -> None:
    tainted = pool("p", M, taints=(TAINT,))
    (finding,) = found("LINT-002", subject(pools=(tainted,), pods=(pods(),)))
    assert (finding.given, finding.need) == ("the executor: tolerates nothing", "a toleration: p has role=spark:NoSchedule")
    assert found("LINT-002", subject(pools=(tainted,), pods=(pods("executor", None, TOLERATION),))) == []
    assert found("LINT-002", subject(pools=(tainted, pool("q", M)), pods=(pods(),))) == [], "the other pool takes them"
    assert found("LINT-002", subject(pools=(tainted,), pods=(pods("other"),))) == [], "a controller that runs on other nodes"


def test_a_taint_that_only_prefers_is_left_alone() -> None:
    preferred = pool("p", M, taints=({**TAINT, "effect": "PreferNoSchedule"},))
    assert found("LINT-002", subject(pools=(preferred,), pods=(pods(),))) == []


def test_a_pool_whose_taints_no_pod_tolerates_is_found() -> None:
    pools = (pool("p", M, taints=(TAINT,)), pool("q", M))
    (finding,) = found("LINT-003", subject(pools=pools, pods=(pods(),)))
    assert finding.given == "p: role=spark:NoSchedule"
    assert found("LINT-003", subject(pools=pools, pods=(pods(), pods("driver", None, TOLERATION)))) == []
    assert found("LINT-003", subject(pools=pools)) == []


@pytest.mark.parametrize(
    ("requirements", "selector", "expected"),
    [
        ((M, SPOT), {}, ["error"]),
        ((M, BOTH), {}, ["error"]),
        ((M,), {}, ["error"]),
        ((M, ON_DEMAND), {}, []),
        ((M, BOTH), {CAPACITY: "on-demand"}, []),
        ((M, BOTH), {CAPACITY: "spot"}, ["error"]),
    ],
)
def test_a_driver_that_may_be_on_spot_is_found(
    requirements: tuple[dict[str, object], ...], selector: dict[str, str], expected: list[str]
) -> None:
    assert severities("LINT-020", subject(pools=(pool("p", *requirements),), pods=(pods("driver", selector),))) == expected


def test_spot_as_a_second_choice_of_the_driver_is_a_warning() -> None:
    pools = (pool("first", M, ON_DEMAND, weight=10), pool("second", M, SPOT))
    assert severities("LINT-020", subject(pools=pools, pods=(pods("driver"),))) == ["warning"]


def test_executors_on_spot_are_as_it_should_be() -> None:
    assert found("LINT-020", subject(pools=(pool("p", M, SPOT),), pods=(pods(),))) == []


def test_a_driver_that_consolidation_may_move_is_found() -> None:
    eager, calm = pool("p", M, ON_DEMAND), pool("p", M, ON_DEMAND, disruption=CALM)
    annotated = pods("driver", annotations={"karpenter.sh/do-not-disrupt": "true"})
    labelled = pods("driver", labels={"app": "job", "spark-role": "driver"})
    assert len(found("LINT-021", subject(pools=(eager,), pods=(pods("driver"),)))) == 1
    assert found("LINT-021", subject(pools=(calm,), pods=(pods("driver"),))) == []
    assert found("LINT-021", subject(pools=(eager,), pods=(annotated, pods()))) == []
    assert found("LINT-021", subject(pools=(eager,), pods=(labelled,), budgets=(LintedBudget(match_labels={"app": "job"}),))) == []
    assert len(found("LINT-021", subject(pools=(eager,), pods=(labelled,), budgets=(LintedBudget(match_labels={"app": "x"}),)))) == 1
