"""The price of a node-hour when Karpenter can pick any of several instance types."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

from penstock.sizing.catalog.catalog import Catalog
from penstock.sizing.cost.usage import NodeUsage
from penstock.sizing.cost.usd import UsdRange

Basis = Literal["listed", "secondary", "assumed", "unknown"]


class NodePrice(NamedTuple):
    """The price of a node-hour.

    Args:
        usd_per_h: None: unknown.
        basis: basis of the price.
        complete: whether the range includes the price of every instance type.
        note: remark for the reader.
    """

    usd_per_h: UsdRange | None
    basis: Basis
    complete: bool
    note: str


def node_price(nodes: NodeUsage, catalog: Catalog, spot_ratio: float | None) -> NodePrice:
    """The lowest and the highest price of a node-hour over the eligible instance types.

    Args:
        nodes: nodes with their eligible instance types.
        catalog: catalog of their region.
        spot_ratio: assumed spot price as a share of the on-demand price, for types without a spot price in the catalog; None: the
            on-demand price is used instead, the upper bound of the spot price.
    """
    return _spot(nodes, catalog, spot_ratio) if nodes.capacity_type == "spot" else _on_demand(nodes, catalog)


def _on_demand(nodes: NodeUsage, catalog: Catalog) -> NodePrice:
    known = [UsdRange.exactly(price) for name in nodes.instance_types if (price := _on_demand_usd(catalog, name)) is not None]
    if not known:
        return NodePrice(None, "unknown", False, f"no on-demand price for {_types(len(nodes.instance_types))}")
    of_types = f"{_types(len(known))}; EC2 is asked for the cheapest one available" if len(known) > 1 else ""
    unpriced = len(nodes.instance_types) - len(known)
    return NodePrice(_hull(known), "listed", not unpriced, _joined(of_types, _left_out(unpriced)))


def _spot(nodes: NodeUsage, catalog: Catalog, spot_ratio: float | None) -> NodePrice:
    ceiling = _ceiling(nodes, catalog)
    ratio = min(1.0, 1.0 if spot_ratio is None else spot_ratio)
    quoted: list[UsdRange] = []
    assumed: list[UsdRange] = []
    unpriced = 0
    for name in nodes.instance_types:
        quotes, on_demand = _quotes(nodes, catalog, name), _on_demand_usd(catalog, name)
        if quotes:
            quoted += [UsdRange.exactly(usd) for usd in quotes if usd <= ceiling]
        elif on_demand is None:
            unpriced += 1
        elif on_demand * ratio <= ceiling:
            assumed.append(UsdRange(low=on_demand * ratio, high=min(on_demand, ceiling)))
    known = [*quoted, *assumed]
    if not known and ceiling < math.inf:
        return NodePrice(
            UsdRange.exactly(ceiling),
            "listed",
            not unpriced,
            "spot is more expensive than the cheapest on-demand type, whose price is used",
        )
    if not known:
        return NodePrice(None, "unknown", False, f"neither a spot nor an on-demand price for {_types(len(nodes.instance_types))}")
    priced = len(nodes.instance_types) - unpriced
    of_types = f"{_types(priced)}; EC2 selects one of them" if priced > 1 else ""
    note = _joined(of_types, _assumption(nodes, len(assumed), bool(quoted), spot_ratio), _left_out(unpriced))
    return NodePrice(_hull(known), "assumed" if assumed else "listed", not unpriced, note)


def _ceiling(nodes: NodeUsage, catalog: Catalog) -> float:
    """The highest spot price that Karpenter accepts.

    Source: karpenter v1.14.1: if both capacity types are allowed, a spot offering above the cheapest on-demand price is not launched.
    """
    on_demand = [price for name in nodes.instance_types if (price := _on_demand_usd(catalog, name)) is not None]
    return min(on_demand) if nodes.or_on_demand and on_demand else math.inf


def _quotes(nodes: NodeUsage, catalog: Catalog, name: str) -> list[float]:
    return [quote.usd_per_h for quote in catalog.spot.get(name, ()) if not nodes.zones or quote.zone in nodes.zones]


def _on_demand_usd(catalog: Catalog, name: str) -> float | None:
    instance = catalog.get(name)
    return instance.on_demand_usd_per_h if instance else None


def _hull(ranges: list[UsdRange]) -> UsdRange:
    return UsdRange(low=min(part.low for part in ranges), high=max(part.high for part in ranges))


def _assumption(nodes: NodeUsage, assumed: int, quoted: bool, spot_ratio: float | None) -> str:
    if not assumed:
        return ""
    which = f"no spot price for {_types(assumed)}" if quoted else "no spot price"
    if spot_ratio is None:
        return f"{which}: the on-demand price is used, which spot does not exceed"
    up_to = "the price of the cheapest on-demand type, above which Karpenter selects none" if nodes.or_on_demand else "the whole"
    return f"{which}: assumed from {min(1.0, spot_ratio):.0%} of the on-demand price up to {up_to}"


def _left_out(unpriced: int) -> str:
    return f"{_types(unpriced)} without a known price left out" if unpriced else ""


def _types(count: int) -> str:
    return f"{count} instance type{'' if count == 1 else 's'}"


def _joined(*notes: str) -> str:
    return "; ".join(note for note in notes if note)
