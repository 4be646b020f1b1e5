from __future__ import annotations

from math import isclose

import pytest
from hypothesis import given

from penstock.sizing.cost.bill import bill
from penstock.sizing.cost.billed import Bill
from penstock.sizing.cost.difference import Difference, difference
from penstock.sizing.cost.prices import shipped
from penstock.sizing.cost.usage import ClusterUsage, NatUsage, NodeUsage, StandardKafka, Usage
from tests.sizing.cost.usages import CATALOG, EVERYTHING, usages


def of(usage: Usage) -> Bill:
    return bill(usage, shipped(), CATALOG, 0.4)


def kinds(result: Difference) -> dict[str, str]:
    return {f"{change.service}: {change.item}": change.kind for change in result.changes}


BEFORE = Usage(
    nodes=(NodeUsage(label="executors", instance_types=("m1.cheap",), capacity_type="on-demand", count=2),),
    clusters=(ClusterUsage(label="cluster"),),
    nat=NatUsage(gateways=1),
)
AFTER = Usage(
    nodes=(NodeUsage(label="executors", instance_types=("m1.cheap", "m1.dear"), capacity_type="on-demand", count=3),),
    clusters=(ClusterUsage(label="cluster"),),
    kafka=(StandardKafka(broker_type="kafka.m7g.large", brokers=3, storage_gib=100),),
)


def test_items_are_matched_added_removed_and_changed() -> None:
    assert kinds(difference(of(BEFORE), of(AFTER))) == {
        "EC2: executors, on-demand": "changed",
        "EBS: executors, on-demand, root volumes": "changed",
        "EKS: cluster, standard support": "same",
        "MSK: kafka, kafka.m7g.large": "added",
        "MSK: kafka, volumes": "added",
        "NAT: gateways": "removed",
    }


def test_a_change_has_its_sign_and_its_share() -> None:
    result = difference(of(BEFORE), of(AFTER))
    nodes = result.changes[0]
    assert nodes.usd_per_h is not None and nodes.percent is not None
    assert [nodes.usd_per_h.low, nodes.usd_per_h.high] == pytest.approx([0.1, 1.0])
    assert [nodes.percent.low, nodes.percent.high] == pytest.approx([50, 500])
    removed = result.changes[-1]
    assert removed.usd_per_month is not None and removed.percent is not None
    assert removed.usd_per_month.low == pytest.approx(-32.85)
    assert removed.percent.low == pytest.approx(-100)


def test_what_is_added_has_no_share() -> None:
    added = next(change for change in difference(of(BEFORE), of(AFTER)).changes if change.kind == "added")
    assert added.before is None and added.percent is None
    assert added.usd_per_month is not None and added.usd_per_month.low == pytest.approx(446.76)


def test_the_difference_from_nothing_is_the_whole_bill() -> None:
    result = difference(of(Usage()), of(AFTER))
    assert result.usd_per_month.low == of(AFTER).total.usd_per_month.low
    assert result.percent.low is None


def test_an_unknown_price_on_one_side_leaves_the_change_unknown() -> None:
    odd = Usage(nodes=(NodeUsage(label="executors", instance_types=("m1.unpriced",), capacity_type="on-demand", count=2),))
    result = difference(of(BEFORE), of(odd))
    assert result.changes[0].kind == "changed"
    assert result.changes[0].usd_per_month is None and result.changes[0].percent is None
    assert not result.complete


def test_lines_of_one_item_are_compared_together() -> None:
    (one,) = BEFORE.nodes
    twice = BEFORE.model_copy(update={"nodes": (one, one)})
    change = difference(of(BEFORE), of(twice)).changes[0]
    assert change.after is not None and change.after.quantity == 4
    assert change.percent is not None and change.percent.low == pytest.approx(100)


@given(usages)
def test_a_bill_and_itself_differ_by_nothing(usage: Usage) -> None:
    result = difference(of(usage), of(usage))
    assert {change.kind for change in result.changes} <= {"same"}
    assert (result.usd_per_h.low, result.usd_per_h.high, result.usd_per_month.low, result.usd_per_month.high) == (0, 0, 0, 0)
    assert all(change.usd_per_month is None or (change.usd_per_month.low, change.usd_per_month.high) == (0, 0) for change in result.changes)


@given(usages, usages)
def test_swapping_the_bills_turns_the_signs(first: Usage, second: Usage) -> None:
    result, back = difference(of(first), of(second)), difference(of(second), of(first))
    assert (result.usd_per_month.low, result.usd_per_month.high) == (-back.usd_per_month.low, -back.usd_per_month.high)
    returned = {(change.service, change.item): change for change in back.changes}
    turned = {"added": "removed", "removed": "added", "same": "same", "changed": "changed"}
    for change in result.changes:
        other = returned.pop((change.service, change.item))
        assert other.kind == turned[change.kind]
        assert (change.usd_per_month is None) == (other.usd_per_month is None)
        if change.usd_per_month and other.usd_per_month:
            assert (change.usd_per_month.low, change.usd_per_month.high) == (-other.usd_per_month.low, -other.usd_per_month.high)
    assert not returned


@given(usages, usages)
def test_the_changes_add_up_to_the_difference_of_the_totals(first: Usage, second: Usage) -> None:
    result = difference(of(first), of(second))
    if all(change.usd_per_month is not None for change in result.changes):
        summed = sum(change.usd_per_month.low for change in result.changes if change.usd_per_month)
        scale = max(of(first).total.usd_per_month.high, of(second).total.usd_per_month.high)
        assert isclose(result.usd_per_month.low, summed, rel_tol=1e-9, abs_tol=1e-9 * scale + 1e-9)


def test_a_difference_as_json_is_read_back_as_it_was() -> None:
    result = difference(of(BEFORE), of(EVERYTHING))
    assert Difference.model_validate_json(result.model_dump_json(by_alias=True)) == result
