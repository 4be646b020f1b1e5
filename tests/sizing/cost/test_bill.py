from __future__ import annotations

from math import isclose

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.sizing.catalog import catalog
from penstock.sizing.catalog.catalog import SpotPrice
from penstock.sizing.cost.bill import bill
from penstock.sizing.cost.billed import Bill, Line
from penstock.sizing.cost.errors import RegionsDiffer
from penstock.sizing.cost.prices import Prices, shipped
from penstock.sizing.cost.usage import BucketUsage, ClusterUsage, ExpressKafka, NatUsage, NodeUsage, StandardKafka, Usage, ZoneTraffic
from penstock.sizing.cost.usd import UsdRange
from tests.sizing.cost.usages import CATALOG, EVERYTHING, ZONES, usages

SPOT_RATIOS = st.none() | st.floats(min_value=0, max_value=1)


def of(usage: Usage, spot_ratio: float | None = None, prices: Prices | None = None) -> Bill:
    return bill(usage, prices or shipped(), CATALOG, spot_ratio)


def only_line(usage: Usage, spot_ratio: float | None = None) -> Line:
    (line,) = (line for line in of(usage, spot_ratio).lines if line.service != "EBS")
    return line


def nodes(*types: str, spot: bool = False, count: int = 1, zones: tuple[str, ...] = (), or_on_demand: bool = False) -> Usage:
    used = NodeUsage(
        label="executors",
        instance_types=types,
        capacity_type="spot" if spot else "on-demand",
        count=count,
        zones=zones,
        or_on_demand=or_on_demand,
    )
    return Usage(nodes=(used,))


# Source: the worked examples of AWS's own MSK sizing script (agent-toolkit-for-aws@d6ad2e4), brokers only, 730 hours.
@pytest.mark.parametrize(
    ("broker_type", "brokers", "usd_per_month"),
    [
        ("kafka.m7g.large", 18, 2680.56),
        ("kafka.m7g.xlarge", 9, 2680.56),
        ("kafka.m7g.2xlarge", 6, 3574.08),
        ("kafka.m7g.4xlarge", 3, 3574.08),
        ("kafka.m5.large", 21, 3219.3),
        ("kafka.m7g.large", 12, 1787.04),
        ("kafka.m5.large", 12, 1839.6),
        ("express.m7g.large", 9, 2680.56),
        ("express.m7g.xlarge", 6, 3574.08),
        ("express.m7g.2xlarge", 3, 3574.08),
    ],
)
def test_brokers_cost_a_month_what_awss_own_script_says(broker_type: str, brokers: int, usd_per_month: float) -> None:
    kafka = (
        ExpressKafka(broker_type=broker_type, brokers=brokers, storage_gib=0, in_gib_per_month=0)
        if broker_type.startswith("express")
        else StandardKafka(broker_type=broker_type, brokers=brokers, storage_gib=0)
    )
    line = only_line(Usage(kafka=(kafka,)))
    assert line.usd_per_month is not None and line.usd_per_month.exact
    assert round(line.usd_per_month.low, 2) == usd_per_month


# Source: worked examples for checkpoints by Spark 4.1.1's file layout, one PUT-class request per object, in a month of 30 days.
@pytest.mark.parametrize(
    ("objects_per_day", "snapshot_objects_per_day", "usd_per_30_days"),
    [(3473280.0, 345600.0, 572.83), (13841280.0, 1382400.0, 2283.55), (190080.0, 36864.0, 34.04)],
)
def test_checkpoints_cost_their_requests(objects_per_day: float, snapshot_objects_per_day: float, usd_per_30_days: float) -> None:
    requests = 30 * (objects_per_day + snapshot_objects_per_day)
    line = only_line(Usage(buckets=(BucketUsage(label="checkpoints", put_requests_per_month=requests),)))
    assert line.usd_per_month is not None
    assert round(line.usd_per_month.low, 2) == usd_per_30_days


def test_on_demand_nodes_cost_from_the_cheapest_to_the_dearest_type() -> None:
    line = only_line(nodes("m1.cheap", "m1.dear", "m1.quoted", count=2))
    assert line.unit_price_usd == UsdRange(low=0.1, high=0.4)
    assert line.usd_per_h == UsdRange(low=0.2, high=0.8)
    assert line.usd_per_month is not None and line.usd_per_month.low == pytest.approx(146)
    assert (line.price_source, line.price_date, line.basis, line.complete) == ("a catalog for tests", "2026-11-20", "listed", True)
    assert line.note == "3 instance types; EC2 is asked for the cheapest one available"


def test_spot_nodes_cost_from_the_lowest_to_the_highest_price_of_their_types_and_zones() -> None:
    line = only_line(nodes("m1.quoted", spot=True, count=10))
    assert line.unit_price_usd == UsdRange(low=0.06, high=0.09)
    assert line.basis == "listed"
    in_one_zone = only_line(nodes("m1.quoted", spot=True, zones=ZONES[1:]))
    assert in_one_zone.unit_price_usd == UsdRange.exactly(0.09)


def test_without_a_spot_price_a_ratio_is_assumed_and_on_demand_is_the_most() -> None:
    line = only_line(nodes("m1.cheap", "m1.quoted", spot=True), spot_ratio=0.4)
    assert line.unit_price_usd == UsdRange(low=0.1 * 0.4, high=0.1)
    assert line.basis == "assumed"
    assert "no spot price for 1 instance type: assumed from 40% of the on-demand price up to the whole" in line.note
    assert any("assumed" in text for text in of(nodes("m1.cheap", spot=True), 0.4).assumptions)


def test_beside_on_demand_spot_is_never_dearer_than_the_cheapest_on_demand_type() -> None:
    line = only_line(nodes("m1.cheap", "m1.dear", spot=True, or_on_demand=True), spot_ratio=0.2)
    assert line.unit_price_usd == UsdRange(low=0.1 * 0.2, high=0.1)
    assert line.note.endswith("up to the price of the cheapest on-demand type, above which Karpenter selects none")
    alone = only_line(nodes("m1.cheap", "m1.dear", spot=True), spot_ratio=0.2)
    assert alone.unit_price_usd == UsdRange(low=0.1 * 0.2, high=0.4)


def test_where_spot_is_dearer_than_on_demand_on_demand_counts() -> None:
    quotes = {"m1.cheap": (SpotPrice(zone=ZONES[0], usd_per_h=0.11),)}
    dear = CATALOG.model_copy(update={"spot": quotes})
    (line, _) = bill(nodes("m1.cheap", spot=True, or_on_demand=True), shipped(), dear).lines
    assert line.unit_price_usd == UsdRange.exactly(0.1)
    assert line.note == "spot is more expensive than the cheapest on-demand type, whose price is used"


def test_a_ratio_above_1_counts_as_on_demand() -> None:
    assert only_line(nodes("m1.cheap", spot=True), spot_ratio=1.5).unit_price_usd == UsdRange.exactly(0.1)


def test_without_a_ratio_too_spot_counts_as_on_demand() -> None:
    line = only_line(nodes("m1.cheap", spot=True))
    assert line.unit_price_usd == UsdRange.exactly(0.1)
    assert line.note == "no spot price: the on-demand price is used, which spot does not exceed"


@pytest.mark.parametrize("spot", [True, False])
@pytest.mark.parametrize("name", ["m1.unpriced", "m9.missing"])
def test_an_unknown_price_is_noted_and_never_counts_as_nothing(name: str, spot: bool) -> None:
    made = of(nodes(name, spot=spot))
    assert made.lines[0].usd_per_h is None and made.lines[0].basis == "unknown"
    assert not made.total.complete
    assert made.total.unknown == (f"EC2: executors, {'spot' if spot else 'on-demand'}",)
    assert not made.services["EC2"].complete and made.services["EBS"].complete


def test_a_type_without_a_price_beside_others_is_left_out_and_said() -> None:
    made = of(nodes("m1.cheap", "m1.unpriced"))
    assert made.lines[0].usd_per_h == UsdRange.exactly(0.1)
    assert made.lines[0].note == "1 instance type without a known price left out"
    assert not made.total.complete


def test_a_broker_without_a_price_is_unknown_and_names_the_price() -> None:
    made = of(Usage(kafka=(StandardKafka(broker_type="kafka.m9.large", brokers=3, storage_gib=100),)))
    brokers, volumes = made.lines
    assert brokers.usd_per_month is None and brokers.note == "unknown price: msk_broker_usd_per_h.kafka.m9.large"
    assert volumes.usd_per_month == UsdRange.exactly(10.0)
    assert made.total.usd_per_month == UsdRange.exactly(10.0) and not made.total.complete


@pytest.mark.parametrize(
    ("usage", "item", "usd_per_month"),
    [
        (Usage(clusters=(ClusterUsage(label="c"),)), "c, standard support", 73.0),
        (Usage(clusters=(ClusterUsage(label="c", support="extended"),)), "c, extended support", 438.0),
        (Usage(nat=NatUsage(gateways=3)), "gateways", 98.55),
        (Usage(nat=NatUsage(gateways=0, gib_per_month=100)), "data", 4.5),
        (Usage(traffic=(ZoneTraffic(label="t", gib_per_month=100),)), "t, between zones", 2.0),
        (Usage(buckets=(BucketUsage(label="b", stored_gib=1000),)), "b, stored", 23.0),
        (Usage(buckets=(BucketUsage(label="b", get_requests_per_month=1e6),)), "b, GET requests", 0.4),
    ],
)
def test_each_service_is_priced_by_its_own_unit(usage: Usage, item: str, usd_per_month: float) -> None:
    line = only_line(usage)
    assert line.item == item
    assert line.usd_per_month is not None and line.usd_per_month.low == pytest.approx(usd_per_month)
    assert line.usd_per_h is not None and line.usd_per_h.low == pytest.approx(usd_per_month / 730)


def test_storage_above_the_first_tier_says_that_it_is_priced_too_high() -> None:
    line = only_line(Usage(buckets=(BucketUsage(label="b", stored_gib=60_000),)))
    assert "51,200 GiB" in line.note


def test_everything_at_once_has_each_line_once_and_its_date() -> None:
    made = of(EVERYTHING, 0.4)
    assert len({(line.service, line.item) for line in made.lines}) == len(made.lines)
    assert list(made.services) == ["EC2", "EBS", "EKS", "MSK", "S3", "NAT", "Data transfer"]
    assert {line.price_date for line in made.lines} == {"2026-11-20", "2026-11-21"}
    assert {line.basis for line in made.lines} == {"listed", "secondary", "assumed"}
    assert made.total.complete


def test_prices_and_catalog_of_two_regions_are_rejected() -> None:
    foreign = CATALOG.model_copy(update={"region": "eu-central-1"})
    with pytest.raises(RegionsDiffer) as raised:
        bill(Usage(), shipped(), foreign)
    assert "SIZ-052" in raised.value.render()


def test_the_shipped_catalog_and_prices_go_together() -> None:
    made = bill(nodes("m5.large", "r6i.2xlarge"), shipped(), catalog.shipped())
    assert made.lines[0].usd_per_h == UsdRange(low=0.096, high=0.504)
    assert made.lines[0].price_date == "2026-07"


@given(usages, SPOT_RATIOS)
def test_the_total_is_the_sum_of_its_lines_and_of_its_services(usage: Usage, spot_ratio: float | None) -> None:
    made = of(usage, spot_ratio)
    for bound in ("low", "high"):
        for period in ("usd_per_h", "usd_per_month"):
            whole = getattr(getattr(made.total, period), bound)
            lines = [getattr(amount, bound) for line in made.lines if (amount := getattr(line, period)) is not None]
            services = [getattr(getattr(part, period), bound) for part in made.services.values()]
            assert isclose(whole, sum(lines), rel_tol=1e-9, abs_tol=1e-9)
            assert isclose(whole, sum(services), rel_tol=1e-9, abs_tol=1e-9)
    assert made.total.complete == all(line.complete for line in made.lines)


@given(usages, SPOT_RATIOS)
def test_a_month_is_730_hours_of_every_line_and_a_missing_price_is_never_0(usage: Usage, spot_ratio: float | None) -> None:
    for line in of(usage, spot_ratio).lines:
        assert (line.unit_price_usd is None) == (line.usd_per_h is None) == (line.usd_per_month is None) == (line.basis == "unknown")
        assert line.quantity > 0
        if line.usd_per_h is not None and line.usd_per_month is not None:
            assert isclose(line.usd_per_month.low, 730 * line.usd_per_h.low, rel_tol=1e-9, abs_tol=1e-9)
            assert isclose(line.usd_per_month.high, 730 * line.usd_per_h.high, rel_tol=1e-9, abs_tol=1e-9)
        else:
            assert not line.complete


@given(usages, SPOT_RATIOS)
def test_a_bill_as_json_is_read_back_as_it_was(usage: Usage, spot_ratio: float | None) -> None:
    made = of(usage, spot_ratio)
    assert Bill.model_validate_json(made.model_dump_json(by_alias=True)) == made


@given(usages, st.integers(min_value=0, max_value=50))
def test_one_more_node_never_makes_the_bill_lower(usage: Usage, more: int) -> None:
    extra = NodeUsage(label="more", instance_types=("m1.cheap",), capacity_type="on-demand", count=more)
    grown = usage.model_copy(update={"nodes": (*usage.nodes, extra)})
    assert of(grown).total.usd_per_month.low >= of(usage).total.usd_per_month.low
