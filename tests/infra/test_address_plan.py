from __future__ import annotations

from ipaddress import IPv4Network
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.infra.address_plan import MAX_PREFIX, MAX_PRIVATE_PREFIX, MAX_VPC_PREFIX, MAX_ZONES, address_plan, network, subnet_faults

VPCS = st.integers(16, MAX_VPC_PREFIX).flatmap(
    lambda prefix: st.integers(0, 2 ** (prefix - 8) - 1).map(lambda n: IPv4Network((10 << 24 | n << (32 - prefix), prefix)))
)


@given(vpc=VPCS, zones=st.integers(1, MAX_ZONES))
def test_computed_subnets_lie_apart_within_the_vpc_and_are_large_enough(vpc: IPv4Network, zones: int) -> None:
    plan = address_plan(str(vpc), zones)
    assert len(plan.private) == len(plan.public) == zones
    subnets = [IPv4Network(cidr) for cidr in (*plan.private, *plan.public)]
    assert all(subnet.subnet_of(vpc) for subnet in subnets)
    assert not any(first.overlaps(second) for first, second in combinations(subnets, 2))
    assert all(IPv4Network(cidr).prefixlen <= MAX_PRIVATE_PREFIX for cidr in plan.private)
    assert all(IPv4Network(cidr).prefixlen <= MAX_PREFIX for cidr in plan.public)
    assert subnet_faults(plan.private, within=str(vpc), max_prefix=MAX_PRIVATE_PREFIX) == []
    assert subnet_faults(plan.public, within=str(vpc), max_prefix=MAX_PREFIX, taken=plan.private) == []


@given(vpc=VPCS, zones=st.integers(1, MAX_ZONES - 1))
def test_one_zone_more_moves_no_subnet(vpc: IPv4Network, zones: int) -> None:
    fewer, more = address_plan(str(vpc), zones), address_plan(str(vpc), zones + 1)
    assert more.private[:-1] == fewer.private
    assert more.public[:-1] == fewer.public


@pytest.mark.parametrize(
    ("given", "need"),
    [
        ("10.0.0.1/16", "the network address of the block: 10.0.0.0/16, not 10.0.0.1/16"),
        ("10.0.0.0/33", "an IPv4 CIDR block such as 10.0.0.0/16, not 10.0.0.0/33"),
        ("10.0.0.256/24", "an IPv4 CIDR block"),
        ("fd00::/64", "an IPv4 CIDR block"),
        ("", "an IPv4 CIDR block"),
    ],
)
def test_an_invalid_range_is_reported(given: str, need: str) -> None:
    with pytest.raises(ValueError, match=need.replace(".", r"\.")):
        network(given)


def test_all_faults_of_subnets_are_reported_at_once() -> None:
    faults = subnet_faults(["10.0.0.0/24", "10.0.0.128/25", "10.1.0.0/24", "10.0.2.0/26", "x"], within="10.0.0.0/16", max_prefix=25)
    assert faults == [
        "non-overlapping CIDR blocks; 10.0.0.128/25 overlaps 10.0.0.0/24",
        "within the VPC's CIDR block 10.0.0.0/16; 10.1.0.0/24 is outside",
        "a prefix length from /16 to /25; 10.0.2.0/26 has 64 addresses",
        "an IPv4 CIDR block such as 10.0.0.0/16, not x",
    ]
