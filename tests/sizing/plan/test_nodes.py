"""The nodes of a plan: both orders, the arrival of pods, and the details of a node."""

from __future__ import annotations

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from penstock.sizing.catalog.catalog import Catalog, SpotPrice
from penstock.sizing.errors import PenstockError
from penstock.sizing.load.parallelism import needed_slots
from penstock.sizing.plan import plan
from penstock.sizing.plan.job_pods import DRIVER, EXECUTOR, pod_groups
from penstock.sizing.plan.nodes import DRIVER_START_S, Allocation, allocation_of, arrivals, left_out
from penstock.sizing.planned import Plan
from penstock.sizing.planned_nodes import NodesPlan, PlacedPods
from penstock.sizing.targets import Parallelism, Targets
from tests.sizing.clusters import LOAD, PRODUCTION, targets, with_pool
from tests.sizing.mixed_targets import mixed_targets


def nodes_of(wanted: Targets) -> NodesPlan:
    nodes_plan = plan(wanted, PRODUCTION).nodes
    assert nodes_plan is not None
    return nodes_plan


def placed(order: PlacedPods) -> dict[str, int]:
    result: dict[str, int] = dict(order.unschedulable)
    for group in order.groups:
        for pods in group.pods:
            result[pods.group] = result.get(pods.group, 0) + group.count * pods.count
    return result


def test_without_a_cluster_there_are_no_nodes_and_no_cost() -> None:
    made = plan(targets())
    assert (made.nodes, made.cost, made.spot, made.feasible) == (None, None, None, True)


def test_executors_share_a_spot_node_and_the_driver_has_an_on_demand_one() -> None:
    driver, executors = nodes_of(targets()).one_batch.groups
    assert (driver.node_pool, driver.capacity_type, driver.pods[0].group) == ("drivers", "on-demand", DRIVER)
    assert (executors.node_pool, executors.capacity_type, executors.count) == ("executors", "spot", 1)
    assert [(pods.group, pods.count, pods.cpu_millicores, pods.memory_mib) for pods in executors.pods] == [(EXECUTOR, 7, 1000, 2048)]


def test_the_example_of_a_node_has_room_for_its_pods_beside_the_daemon_sets() -> None:
    for group in nodes_of(targets(40, 4)).staged.groups:
        example = group.example
        assert example is not None
        assert example.instance_type in group.launch_types
        assert (example.daemon_sets_cpu_millicores, example.daemon_sets_memory_mib) == (280, 232)
        cpu = sum(pods.count * pods.cpu_millicores for pods in group.pods)
        memory = sum(pods.count * pods.memory_mib for pods in group.pods)
        assert cpu + example.daemon_sets_cpu_millicores <= example.allocatable_cpu_millicores
        assert memory + example.daemon_sets_memory_mib <= example.allocatable_memory_mib


def test_the_driver_comes_first_and_executors_in_sparks_batches() -> None:
    made = plan(targets(50, 1), PRODUCTION)
    groups = pod_groups(made.pods, made.spark_conf, PRODUCTION)
    # Karpenter waits a second for further pods before it creates the driver's node.
    begin = 1.0 + 60.0 + DRIVER_START_S
    result = [(one.at_s, one.group, one.count) for one in arrivals(groups, {}, 60.0)]
    assert result == [(0.0, DRIVER, 1), (begin, EXECUTOR, 20), (begin + 1, EXECUTOR, 20), (begin + 2, EXECUTOR, 10)]
    later = [(one.at_s, one.count) for one in arrivals(groups, {EXECUTOR: Allocation(30, 2.5)}, 0.0)]
    assert later == [(0.0, 1), (1.0 + DRIVER_START_S, 30), (1.0 + DRIVER_START_S + 2.5, 20)]


def test_the_settings_say_how_executors_are_asked_for() -> None:
    assert allocation_of({}) == Allocation(20, 1.0)
    conf = {"spark.kubernetes.allocation.batch.size": "5", "spark.kubernetes.allocation.batch.delay": "2500ms"}
    assert allocation_of(conf) == Allocation(5, 2.5)
    assert allocation_of({"spark.kubernetes.allocation.batch.delay": "3000"}).delay_s == 3.0


def test_smaller_batches_never_take_fewer_nodes_on_a_first_start_than_one_batch() -> None:
    for size in ("1", "5", "100"):
        nodes = nodes_of(targets(60, 2, spark_conf={"spark.kubernetes.allocation.batch.size": size}))
        assert nodes.staged.nodes >= nodes.one_batch.nodes


def test_what_finds_no_node_is_counted_by_the_worse_of_the_two_orders() -> None:
    tight = with_pool("executors", limits={"nodes": "2"})
    made = plan(targets(100, 1), tight)
    assert made.nodes is not None
    groups = pod_groups(made.pods, made.spark_conf, tight)
    assert left_out(groups, tight, {}) == made.nodes.staged.unschedulable
    assert "executor" not in made.nodes.one_batch.unschedulable


def test_spot_prices_of_the_catalog_are_taken_where_it_has_some() -> None:
    catalog = PRODUCTION.catalog
    prices = {one.name: (SpotPrice(zone="us-east-1a", usd_per_h=2.0),) for one in catalog.types}
    cheap = {"r5.2xlarge": (SpotPrice(zone="us-east-1a", usd_per_h=0.001),)}
    priced = Catalog.model_construct(**{**dict(catalog), "spot": {**prices, **cheap}})
    made = plan(targets(), PRODUCTION.model_copy(update={"catalog": priced}))
    assert made.nodes is not None
    (executors,) = [group for group in made.nodes.one_batch.groups if group.node_pool == "executors"]
    # The others cost more than the cheapest on-demand machine, so they are not requested.
    assert (executors.capacity_type, executors.launch_types) == ("spot", ("r5.2xlarge",))
    assert made.cost is not None
    assert made.cost.lines[1].basis == "listed"


def of_few_executors(wanted: Targets) -> Targets:
    """At most a few hundred executors, so that each example is placed quickly."""
    assert wanted.parallelism is not None
    return wanted.model_copy(update={"parallelism": Parallelism(value=min(wanted.parallelism.value, 300))})


def check(made: Plan) -> None:
    """Properties of every plan in a cluster."""
    assert made.nodes is not None
    for order in (made.nodes.one_batch, made.nodes.staged):
        assert placed(order) == {DRIVER: 1, EXECUTOR: made.totals.executors}
        assert order.nodes == sum(group.count for group in order.groups)
        assert made.feasible <= (not order.unschedulable)
        on_spot = [pods.group for group in order.groups if group.capacity_type == "spot" for pods in group.pods]
        assert made.feasible <= (DRIVER not in on_spot)
    assert made.feasible == (not made.violations)


@settings(max_examples=60)
@given(mixed_targets(python_memory=True))
def test_any_job_has_every_pod_on_a_node_or_is_not_feasible(wanted: Targets) -> None:
    try:
        made = plan(of_few_executors(wanted), PRODUCTION)
    except PenstockError:
        return
    check(made)


@settings(max_examples=40)
@given(mixed_targets(), st.sampled_from([{"cpu": "16"}, {"memory": "100Gi"}, {"nodes": "2"}]), st.booleans())
def test_under_any_limit_every_pod_is_on_a_node_or_the_plan_is_not_feasible(wanted: Targets, limits: dict[str, str], spot: bool) -> None:
    tight = with_pool("executors", limits=limits)
    if spot:
        tight = with_pool("drivers", tight, requirements={"karpenter.sh/capacity-type": ["spot"]})
    try:
        made = plan(of_few_executors(wanted), tight)
    except PenstockError:
        return
    check(made)


@settings(max_examples=40)
@given(st.floats(1, 200_000), st.floats(1, 5), st.floats(100, 5000), st.sampled_from([1, 2, 4, 8]))
def test_a_feasible_plan_carries_its_load_and_more_load_never_takes_fewer_executors(
    events_per_s: float, factor: float, per_slot: float, slots: int
) -> None:

    made = []
    for rate in (events_per_s, events_per_s * factor):
        load = LOAD.model_copy(update={"events_per_s": rate, "events_per_slot_per_s": per_slot})
        parallelism = needed_slots(load, 10.0).slots
        assume(parallelism <= 400)
        executor = {"memory_mib": 8192, "cpu_millicores": slots * 1000}
        made.append(plan(targets(parallelism, slots, executor=executor, load=load, source_topics={"a": None}), PRODUCTION))
    for one in made:
        check(one)
        assert one.throughput is not None
        if one.feasible:
            assert one.throughput.capability.capacity_events_per_s >= one.throughput.target_events_per_s
    assert made[0].totals.executors <= made[1].totals.executors
