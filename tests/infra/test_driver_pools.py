from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.infra.cluster import cluster
from penstock.infra.driver_pools import leave_drivers_alone
from penstock.infra.environment_file import load, names
from penstock.infra.errors import DriversDisturbed
from penstock.sizing.errors import Faults
from penstock.sizing.plan import plan
from penstock.sizing.plan.together import plan_together
from penstock.sizing.planned_nodes import NodesPlan
from tests.infra.environments import pool, read
from tests.sizing.clusters import PRODUCTION, targets


@pytest.fixture(scope="module")
def nodes() -> NodesPlan:
    """Of one job, whose driver is placed in the pool drivers."""
    return plan_together({"clicks": plan(targets(), PRODUCTION)}, PRODUCTION).nodes


def disruption(**fields: Any) -> dict[str, Any]:
    return {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "5m", **fields}


def check(folder: Path, nodes: NodesPlan, name: str = "drivers", **fields: Any) -> None:
    leave_drivers_alone(read(folder, lambda spec: pool(spec, name).update(fields)), nodes)


@pytest.mark.parametrize("name", [name for name in names() if load(name).spec.nodes])
def test_every_shipped_environment_leaves_drivers_alone(name: str, nodes: NodesPlan) -> None:
    environment = load(name)
    assert environment.spec.nodes and cluster(environment)
    leave_drivers_alone(environment, nodes)


@pytest.mark.parametrize(
    "budgets",
    [
        [{"nodes": "0"}],
        [{"nodes": "0%", "reasons": ["Drifted"]}],
        [{"nodes": "1", "reasons": ["Empty"]}, {"nodes": "0", "reasons": ["Drifted", "Underutilized"]}],
        # On Sundays at 03:00 UTC, for an hour less than a week: the remaining hour is a planned maintenance window.
        [{"nodes": "0", "reasons": ["Drifted"], "schedule": "0 3 * * 0", "duration": "167h"}],
    ],
)
def test_a_budget_of_no_node_holds_drivers_where_they_are(tmp_path: Path, nodes: NodesPlan, budgets: list[dict[str, Any]]) -> None:
    check(tmp_path, nodes, disruption=disruption(budgets=budgets))


@pytest.mark.parametrize(
    "budgets", [[], [{"nodes": "1"}], [{"nodes": "0", "reasons": ["Empty"]}], [{"nodes": "10%", "reasons": ["Drifted"]}]]
)
def test_a_budget_that_lets_a_drifted_node_go_is_refused(tmp_path: Path, nodes: NodesPlan, budgets: list[dict[str, Any]]) -> None:
    with pytest.raises(DriversDisturbed, match="Drifted") as raised:
        check(tmp_path, nodes, disruption=disruption(budgets=budgets))
    assert raised.value.path == "spec.nodes.pools[0] (drivers).disruption.budgets"


@pytest.mark.parametrize("policy", ["WhenEmptyOrUnderutilized", "Balanced"])
def test_a_pool_that_saves_money_must_not_do_so_with_drivers(tmp_path: Path, nodes: NodesPlan, policy: str) -> None:
    drifted = [{"nodes": "0", "reasons": ["Drifted"]}]
    with pytest.raises(DriversDisturbed, match="Underutilized"):
        check(tmp_path, nodes, disruption=disruption(consolidationPolicy=policy, budgets=drifted))
    check(tmp_path, nodes, disruption=disruption(consolidationPolicy=policy, consolidateAfter="Never", budgets=drifted))


def test_a_drivers_node_does_not_expire_for_budgets_do_not_stop_that(tmp_path: Path, nodes: NodesPlan) -> None:
    with pytest.raises(DriversDisturbed, match="regardless of budgets") as raised:
        check(tmp_path, nodes, expireAfter="720h")
    assert raised.value.path == "spec.nodes.pools[0] (drivers).expireAfter"
    assert raised.value.given == "720h"


def test_all_the_faults_come_at_once(tmp_path: Path, nodes: NodesPlan) -> None:
    with pytest.raises(Faults) as raised:
        check(tmp_path, nodes, expireAfter="720h", disruption=disruption(budgets=[]))
    assert [fault.code for fault in raised.value.errors] == ["INF-031", "INF-031"]


def test_executors_may_be_moved(tmp_path: Path, nodes: NodesPlan) -> None:
    anything = disruption(consolidationPolicy="WhenEmptyOrUnderutilized", budgets=[{"nodes": "10%"}])
    check(tmp_path, nodes, name="executors", expireAfter="24h", disruption=anything)
