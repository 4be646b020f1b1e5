"""Karpenter's request to EC2 for a claim.

Source: karpenter v1.14.1 (``TruncateInstanceTypes``, ``InstanceTypes.OrderByPrice``) and karpenter-provider-aws v1.14.1
(``pkg/providers/instance``: the filters, ``getCapacityType``, ``getOverrides``). If the last places go to types of equal price,
Karpenter's choice is random, because it lists its types in random order; here they are listed by name before the same sort.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict

from penstock.sizing.catalog.labels import CAPACITY_TYPE, ON_DEMAND, SPOT
from penstock.sizing.placement.go_sort import sort_slice
from penstock.sizing.placement.market import NO_PRICE, Market, bits
from penstock.sizing.placement.pools import enough_values
from penstock.sizing.placement.requirements import Requirements

# Source: karpenter v1.14.1 (MaxInstanceTypes) and karpenter-provider-aws v1.14.1 (maxInstanceTypes).
CLAIM_TYPES = 600
LAUNCH_TYPES = 60

# Karpenter's own wording, as in its events and logs.
_TRUNCATING = (
    "creating instance, insufficient capacity, truncating instance types based on the passed-in requirements, validating minValues, "
    "minValues requirement is not met for label(s)"
)
_NO_OFFERING = "creating instance, getting launch template configs, no capacity offerings are currently available given the constraints"

_STRATEGIES = {SPOT: "price-capacity-optimized", ON_DEMAND: "lowest-price"}


class Launch(BaseModel):
    """A request to EC2's fleet API.

    Args:
        capacity_type: ``spot`` or ``on-demand``; empty if nothing can be launched.
        allocation_strategy: how EC2 chooses among the types.
        instance_types: the types, by name.
        error: why nothing can be launched; otherwise empty.
    """

    model_config = ConfigDict(frozen=True)

    capacity_type: str
    allocation_strategy: str
    instance_types: tuple[str, ...]
    error: str = ""


def cheapest(market: Market, types: int, requirements: Requirements, most: int, spot_at_most: float = NO_PRICE) -> int:
    """The cheapest types, by their lowest price among the offerings that meet the requirements.

    Returns:
        At most `most` of them.
    """
    if types.bit_count() <= most:
        return types
    offerings = list(market.offerings(requirements))
    by_price = list(bits(types))
    sort_slice([market.price(index, offerings, spot_at_most) for index in by_price], by_price)
    return sum(1 << index for index in by_price[:most])


def launch(market: Market, types: int, requirements: Requirements) -> Launch:
    """The request for a claim.

    Args:
        market: the prices.
        types: types of the claim, at most 600.
        requirements: requirements of the claim.
    """
    spot_at_most = NO_PRICE
    if not requirements.has_min_values:
        types = types & ~market.exotic or types
        spot_at_most = _cheapest_on_demand(market, types, requirements)
    types = cheapest(market, types, requirements, LAUNCH_TYPES, spot_at_most)
    if requirements.has_min_values and not enough_values(market, types, requirements):
        return Launch(capacity_type="", allocation_strategy="", instance_types=(), error=_too_few(market, types, requirements))
    return _request(market, types, list(market.offerings(requirements)), spot_at_most)


def _request(market: Market, types: int, offerings: Sequence[tuple[str, str]], spot_at_most: float) -> Launch:
    for capacity_type in (SPOT, ON_DEMAND):
        mine = [offering for offering in offerings if offering[0] == capacity_type]
        bought = [market.types[index].name for index in bits(types) if market.price(index, mine, spot_at_most) < NO_PRICE]
        if bought:
            return Launch(capacity_type=capacity_type, allocation_strategy=_STRATEGIES[capacity_type], instance_types=tuple(bought))
    return Launch(capacity_type="", allocation_strategy="", instance_types=(), error=_NO_OFFERING)


def _cheapest_on_demand(market: Market, types: int, requirements: Requirements) -> float:
    """The price above which spot offerings are dropped: the cheapest on-demand price, if both capacity types are allowed and available."""
    allowed = requirements.get(CAPACITY_TYPE)
    if not (allowed.has(SPOT) and allowed.has(ON_DEMAND)):
        return NO_PRICE
    offerings = [offering for offering in market.offerings(requirements) if offering[0] == ON_DEMAND]
    return min((market.price(index, offerings) for index in bits(types)), default=NO_PRICE)


def _too_few(market: Market, types: int, requirements: Requirements) -> str:
    labels = [
        label
        for label, values in sorted(requirements.by_label.items())
        if values.min_values is not None and not enough_values(market, types, Requirements({label: values}))
    ]
    return f"{_TRUNCATING} (label(s)=[{' '.join(labels)}])"
