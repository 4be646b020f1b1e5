"""The effect of losing spot nodes on a plan."""

from __future__ import annotations

from typing import Any

from penstock.sizing.plan import plan
from penstock.sizing.plan.resilience import MOST_LOSSES
from penstock.sizing.planned import SpotPlan
from tests.sizing.clusters import CAPACITY, LOAD, PRODUCTION, targets, with_pool

GRACE = "spark.kubernetes.executor.terminationGracePeriodSeconds"
ON = {"spark.decommission.enabled": "true"}


def spot_of(**changes: Any) -> SpotPlan | None:
    return plan(targets(changes.pop("parallelism", 91), changes.pop("slots", 13), **changes), PRODUCTION).spot


def test_no_spot_node_no_loss() -> None:
    on_demand = with_pool("executors", requirements={CAPACITY: ["on-demand"]})
    assert plan(targets(load=LOAD), on_demand).spot is None


def test_without_decommissioning_nothing_is_drained() -> None:
    spot = spot_of(spark_conf={"spark.decommission.enabled": "false"})
    assert spot is not None
    assert spot.drain is not None
    assert (spot.drain.fits, spot.drain.available_s, spot.drain.needed_s, spot.losses) == (False, 0.0, 10.0, ())


def test_a_drain_has_the_grace_period_of_the_settings_and_no_more_than_the_notice() -> None:
    available = {"30s": 30.0, "60": 60.0, " 1M ": 60.0, "1min": 60.0, "5m": 110.0, "1500ms": 1.0}
    for text, expected in available.items():
        spot = spot_of(spark_conf={**ON, GRACE: text})
        assert spot is not None
        assert spot.drain is not None
        assert (spot.drain.available_s, spot.drain.fits) == (expected, expected >= 10)
    spot = spot_of(spark_conf={**ON})
    assert spot is not None
    assert spot.drain is not None
    assert spot.drain.available_s == 110.0


def test_of_a_bounded_run_nothing_is_claimed() -> None:
    spot = spot_of(trigger_s=None, load=LOAD)
    assert spot is not None
    assert (spot.drain, spot.losses) == (None, ())


def test_a_lost_node_takes_the_executors_of_the_fullest_node_with_it() -> None:
    # The batches of a first start fill the nodes unevenly.
    wanted = targets(45, 1, load=LOAD.model_copy(update={"events_per_s": 20_000.0}), executor={"memory_mib": 4096})
    made = plan(wanted, PRODUCTION)
    assert made.nodes is not None
    assert made.spot is not None
    spot = [group for group in made.nodes.staged.groups if group.capacity_type == "spot"]
    on_nodes = sorted((pods.count for group in spot for pods in group.pods for _ in range(group.count)), reverse=True)
    assert len(set(on_nodes)) > 1
    assert made.spot.nodes == len(on_nodes)
    for loss in made.spot.losses:
        assert loss.lost_executors == sum(on_nodes[: loss.lost_nodes])


def test_the_losses_go_from_one_node_to_all_in_few_rows_and_get_worse() -> None:
    spot = spot_of(parallelism=300, slots=1, load=LOAD, executor={"memory_mib": 8192})
    assert spot is not None
    lost = [one.lost_nodes for one in spot.losses]
    assert len(lost) == MOST_LOSSES
    assert (lost[-1], lost) == (spot.nodes, sorted(set(lost)))
    lags = [one.lag_events for one in spot.losses]
    assert lags == sorted(lags)
    assert spot.losses[-1].left_events_per_s == 0
