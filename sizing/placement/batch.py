"""Prepares a scenario for the scheduler, and converts the scheduler's result to a decision."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from penstock.sizing.catalog.allocatable import NodeSettings
from penstock.sizing.catalog.catalog import Catalog
from penstock.sizing.catalog.labels import CAPACITY_TYPE, ZONE
from penstock.sizing.placement.decision import NodeClaim
from penstock.sizing.placement.errors import NoSpotPrice
from penstock.sizing.placement.hosts import Claim
from penstock.sizing.placement.launch import CLAIM_TYPES, Launch, cheapest, launch
from penstock.sizing.placement.market import Market, market
from penstock.sizing.placement.pods import Group, group
from penstock.sizing.placement.pools import enough_values
from penstock.sizing.placement.requirements import Requirements, one_of, requirements
from penstock.sizing.placement.scenario import Scenario
from penstock.sizing.placement.taints import PREFER_NO_SCHEDULE

# Zones of the region with a subnet of the NodeClass, unless the caller passes them.
DEFAULT_ZONES = ("a", "b", "c")


def default_zones(region: str) -> tuple[str, ...]:
    """The first three zones of a region."""
    return tuple(f"{region}{letter}" for letter in DEFAULT_ZONES)


def market_of(scenario: Scenario, catalog: Catalog, settings: NodeSettings, zones: Sequence[str] | None) -> Market:
    """The market under a scenario's spot prices.

    Raises:
        NoSpotPrice: SIZ-025, if the catalog's spot prices are requested but it has none.
    """
    if scenario.spot_model == "catalog" and not catalog.spot:
        raise NoSpotPrice(
            path="spotModel",
            given="catalog",
            need=f"a catalog with spot prices; the catalog of {catalog.region}, {catalog.date}, has none",
            fix=f"penstock catalog refresh --region {catalog.region}, or spotModel: ratio with a spotRatio",
        )
    return market(catalog, settings, zones or default_zones(catalog.region), scenario.spot_ratio)


def groups_of(scenario: Scenario) -> list[Group]:
    """The pod groups of a scenario."""
    prefer = any(taint.effect == PREFER_NO_SCHEDULE for pool in scenario.node_pools for taint in pool.spec.template.spec.taints)
    return [group(each.name, index, each.pod, tolerate_prefer_no_schedule=prefer) for index, each in enumerate(scenario.pods)]


def keeps_min_values(claim: Claim, offered: Market) -> bool:
    """Whether a claim truncated to its cheapest types still satisfies ``minValues``; otherwise it is dropped."""
    if not claim.requirements.has_min_values:
        return True
    return enough_values(offered, cheapest(offered, claim.types, claim.requirements, CLAIM_TYPES), claim.requirements)


def node_claim(claim: Claim, offered: Market, at_s: float | None = None) -> NodeClaim:
    """A scheduled claim as sent to EC2."""
    names, request, best = _sent(offered, claim.types, claim.requirements)
    return NodeClaim(
        node_pool=claim.pool.name,
        pods=dict(sorted(claim.pods.items())),
        instance_types=names,
        launch=request,
        at_s=at_s,
        cheapest_type=best[1] if best else None,
        cheapest_usd_per_h=best[0] if best else None,
        zone=best[2] if best else None,
        zones=tuple(zone for zone in offered.zones if claim.requirements.get(ZONE).has(zone))
        if ZONE in claim.requirements.by_label
        else None,
    )


# Executors that are spread over nodes have as many claims of the same types.
@lru_cache(maxsize=64)
def _sent(offered: Market, types: int, asked: Requirements) -> tuple[tuple[str, ...], Launch, tuple[float, str, str] | None]:
    """The types of a claim, the request to EC2, and the cheapest price with its type and zone."""
    types = cheapest(offered, types, asked, CLAIM_TYPES)
    request = launch(offered, types, asked)
    best = None
    if not request.error:
        bought = asked.plus(requirements([(CAPACITY_TYPE, one_of((request.capacity_type,)))]))
        offerings = sorted(offered.offerings(bought), key=lambda offering: offering[1])
        best = min(
            (price, offered.types[index].name, offering[1])
            for offering in offerings
            for index in (offered.index[name] for name in request.instance_types)
            if (price := offered.prices[offering][index]) is not None
        )
    return tuple(offered.names(types)), request, best


def _zones(claim: Claim, offered: Market) -> tuple[str, ...] | None:
    limited = claim.requirements.by_label.get(ZONE)
    return None if limited is None else tuple(zone for zone in offered.zones if limited.has(zone))
