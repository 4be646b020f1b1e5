"""Executors that may be on spot are decommissioned, unless the spec says otherwise."""

from __future__ import annotations

import pytest

from penstock.sizing.plan import plan
from penstock.sizing.plan.spot_defaults import SPOT_DEFAULTS
from tests.sizing.clusters import CAPACITY, PRODUCTION, targets, with_pool

SELECTOR = "spark.kubernetes.executor.node.selector.karpenter.sh/capacity-type"


def added(spark_conf: dict[str, str], on_demand: bool = False) -> dict[str, str]:
    cluster = with_pool("executors", requirements={CAPACITY: ["on-demand"]}) if on_demand else PRODUCTION
    conf = plan(targets(spark_conf=spark_conf), cluster).spark_conf
    return {key: value for key, value in conf.items() if key in SPOT_DEFAULTS}


def test_executors_that_may_be_on_spot_are_decommissioned_within_the_notice() -> None:
    assert added({}) == SPOT_DEFAULTS
    assert plan(targets(), PRODUCTION).spot is not None


def test_executors_on_demand_or_of_an_unknown_environment_are_left_alone() -> None:
    assert added({}, on_demand=True) == {}
    assert added({SELECTOR: "on-demand"}) == {}
    assert not set(SPOT_DEFAULTS) & set(plan(targets()).spark_conf)


@pytest.mark.parametrize("key", sorted(SPOT_DEFAULTS))
def test_the_specs_own_settings_take_precedence(key: str) -> None:
    own = {key: "45s" if "Seconds" in key else "false"}
    assert added(own)[key] == own[key]


def test_a_spec_that_does_not_decommission_gets_none_of_it() -> None:
    assert added({"spark.decommission.enabled": "false"}) == {"spark.decommission.enabled": "false"}
