"""Requests to EC2."""

from __future__ import annotations

from penstock.sizing.catalog.catalog import Catalog, SpotPrice, shipped
from tests.sizing.placement.worlds import CAPACITY, CPU, FAMILY, TYPE, decide, needs, pods, pool

BOTH = needs(CAPACITY, "In", "spot", "on-demand")


def test_on_demand_is_launched_by_the_lowest_price() -> None:
    launch = decide([pool("p", needs(FAMILY, "In", "m6i"))], [pods("g", 1)]).node_claims[0].launch
    assert (launch.capacity_type, launch.allocation_strategy, launch.error) == ("on-demand", "lowest-price", "")


def test_spot_is_preferred_and_launched_by_price_and_capacity() -> None:
    launch = decide([pool("p", needs(FAMILY, "In", "m6i"), BOTH)], [pods("g", 1)]).node_claims[0].launch
    assert (launch.capacity_type, launch.allocation_strategy) == ("spot", "price-capacity-optimized")


def test_at_most_the_60_cheapest_types_are_sent() -> None:
    claim = decide([pool("p", needs(CPU, "Lt", "9"))], [pods("g", 1, cpu="1", memory="2Gi")]).node_claims[0]
    assert len(claim.instance_types) > len(claim.launch.instance_types) == 60
    prices = {instance.name: instance.on_demand_usd_per_h or 0.0 for instance in shipped().types}
    dearest = max(prices[name] for name in claim.launch.instance_types)
    from_data_sheet = [name for name in claim.instance_types if prices[name] < dearest and "metal" not in name and name[0] not in "git"]
    assert set(from_data_sheet) <= set(claim.launch.instance_types)


def test_a_claim_keeps_its_600_cheapest_types() -> None:
    claim = decide([pool("p", BOTH)], [pods("g", 1)]).node_claims[0]
    assert len(claim.instance_types) == 600


def test_metal_drops_out_if_plain_types_are_there_and_is_launched_if_not() -> None:
    claim = decide([pool("p", needs(FAMILY, "In", "m6i"), needs(CPU, "In", "128"))], [pods("g", 1)]).node_claims[0]
    assert set(claim.instance_types) == {"m6i.32xlarge", "m6i.metal"}
    assert claim.launch.instance_types == ("m6i.32xlarge",)
    alone = decide([pool("p", needs(TYPE, "In", "m6i.metal"))], [pods("g", 1)]).node_claims[0]
    assert alone.launch.instance_types == ("m6i.metal",)


def test_with_min_values_nothing_drops_out() -> None:
    claim = decide([pool("p", needs(TYPE, "In", "m6i.32xlarge", "m6i.metal", min_values=2))], [pods("g", 1)]).node_claims[0]
    assert claim.launch.instance_types == ("m6i.32xlarge", "m6i.metal")


def test_spot_dearer_than_the_cheapest_on_demand_offering_drops_out() -> None:
    sizes = needs(TYPE, "In", "m6i.large", "m6i.xlarge", "m6i.2xlarge", "m6i.4xlarge")
    claim = decide([pool("p", sizes, BOTH)], [pods("g", 1, cpu="100m")]).node_claims[0]
    # 0.096 USD is the price of the smallest type on demand; at 40 % 2xlarge is 0.1536 on spot.
    assert len(claim.instance_types) == 4
    assert claim.launch.instance_types == ("m6i.large", "m6i.xlarge")


def test_spot_that_costs_as_much_as_on_demand_stays() -> None:
    claim = decide([pool("p", needs(TYPE, "In", "m6i.large"), BOTH)], [pods("g", 1)], spotRatio=1.0).node_claims[0]
    assert claim.launch.capacity_type == "spot"


def test_where_all_spot_is_dearer_on_demand_is_launched() -> None:
    claim = decide([pool("p", needs(TYPE, "In", "m6i.large"), BOTH)], [pods("g", 1)], spotRatio=1.5).node_claims[0]
    assert (claim.launch.capacity_type, claim.launch.instance_types) == ("on-demand", ("m6i.large",))


def test_min_values_that_60_types_cannot_meet_fail_the_launch_in_karpenters_words() -> None:
    wide = [needs("karpenter.k8s.aws/instance-category", "In", "c", "m", "r"), needs("karpenter.k8s.aws/instance-generation", "Gt", "6")]
    claim = decide([pool("p", *wide, needs(FAMILY, "Exists", min_values=40))], [pods("g", 1, cpu="45")]).node_claims[0]
    assert claim.launch.instance_types == ()
    assert claim.launch.error.endswith("minValues requirement is not met for label(s) (label(s)=[karpenter.k8s.aws/instance-family])")
    assert claim.cheapest_type is None


def test_spot_prices_of_a_snapshot_hold_zone_by_zone() -> None:
    prices = (SpotPrice(zone="us-east-1a", usd_per_h=0.05), SpotPrice(zone="us-east-1b", usd_per_h=0.03))
    catalog = shipped().model_copy(update={"spot": {"m6i.large": prices}})
    assert isinstance(catalog, Catalog)
    pools = [pool("p", needs(FAMILY, "In", "m6i"), capacity="spot")]
    claim = decide(pools, [pods("g", 1)], catalog=catalog, spotModel="catalog", spotRatio=None).node_claims[0]
    assert claim.instance_types == claim.launch.instance_types == ("m6i.large",)
    assert (claim.cheapest_type, claim.cheapest_usd_per_h, claim.zone) == ("m6i.large", 0.03, "us-east-1b")
