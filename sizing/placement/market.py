"""The market: the instance types under given node settings, with their allocatable, labels and offerings.

Sets of types are integers with one bit per type in the order of their names, so that "which of these have at least 8 cores" is one
`and`.

Source for offerings: karpenter-provider-aws v1.14.1 (``pkg/providers/instancetype``): an offering requires a price, and a zone that
offers the type and has a subnet of the NodeClass; A1 machines cannot run AL2023.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence

from penstock.sizing.catalog.allocatable import Allocatable, NodeSettings, allocatable
from penstock.sizing.catalog.catalog import Catalog
from penstock.sizing.catalog.instance_type import InstanceType
from penstock.sizing.catalog.labels import (
    CAPACITY_TYPE,
    NODE_POOL,
    ON_DEMAND,
    RESERVATION,
    SPOT,
    WELL_KNOWN,
    ZONE,
    extras,
    is_exotic,
    label_values,
)
from penstock.sizing.placement.quantities import NANO
from penstock.sizing.placement.requirements import Allowed, Requirements, one_of
from penstock.sizing.placement.resources import (
    AMD_GPU,
    CPU,
    EPHEMERAL_STORAGE,
    GAUDI,
    MEMORY,
    NEURON,
    NEURON_CORE,
    NVIDIA_GPU,
    PODS,
)

_MIB = 1024 * 1024
# Labels that every instance type either has or explicitly lacks.
_SAID = WELL_KNOWN - {NODE_POOL, "karpenter.k8s.aws/placement-group-id", "karpenter.k8s.aws/placement-group-partition"}
# The price of a type without a matching offering.
NO_PRICE = float("inf")

Amounts = tuple[int, ...]

_MAX_MARKETS = 8
_markets: dict[tuple[int, str, tuple[str, ...], float | None], tuple[Catalog, Market]] = {}


class Market:
    """The instance types of a catalog under node settings, zones and spot prices.

    Args:
        catalog: types and prices.
        settings: settings of the nodes.
        zones: zones with a subnet of the NodeClass.
        spot_ratio: each spot price as a share of the on-demand price, rounded to 4 decimals; None: the catalog's own spot prices.
    """

    def __init__(self, catalog: Catalog, settings: NodeSettings, zones: Sequence[str], spot_ratio: float | None) -> None:
        self.types: tuple[InstanceType, ...] = tuple(sorted(catalog.types, key=lambda instance: instance.name))
        self.region = catalog.region
        self.zones = tuple(zones)
        self.index = {instance.name: index for index, instance in enumerate(self.types)}
        self.allocatable = [allocatable(instance, settings) for instance in self.types]
        self.exotic = self._mask(is_exotic(instance) for instance in self.types)
        self.fitting = _StepsByResource(self.types, self.allocatable, _HELD)
        self.capacities = _StepsByResource(self.types, self.allocatable, _CAPACITY)
        # A type whose remaining amount of a resource is negative fits no pod; the number of devices is never negative.
        self.usable = self._mask(
            room.cpu_millicores >= 0 and room.memory_mib >= 0 and room.pods >= 0 and room.ephemeral_storage_mib >= 0
            for room in self.allocatable
        )
        self.prices = self._offerings(catalog, settings, spot_ratio)
        self._offered = {offering: self._mask(price is not None for price in prices) for offering, prices in self.prices.items()}
        self._by_label: dict[str, dict[Allowed, int]] = {}
        self._allowing: dict[tuple[str, Allowed], int] = {}
        self._compatible: dict[Requirements, int] = {}

    def names(self, types: int) -> list[str]:
        """The names of a set of types, sorted."""
        return [self.types[index].name for index in bits(types)]

    def compatible(self, requirements: Requirements) -> int:
        """The types that meet requirements and have an offering that meets them."""
        compatible_types = self._compatible.get(requirements)
        if compatible_types is None:
            compatible_types = self.matching(requirements)
            offered = 0
            for offering in self.offerings(requirements):
                offered |= self._offered[offering]
            compatible_types = self._compatible[requirements] = compatible_types & offered
        return compatible_types

    def matching(self, requirements: Requirements) -> int:
        """The types whose labels meet requirements, regardless of offerings."""
        matching_types = self.usable
        for label, values in requirements.by_label.items():
            if label in _SAID:
                matching_types &= self.allowing(label, values)
        return matching_types

    def allowing(self, label: str, values: Allowed) -> int:
        """The types with an allowed value of a label, or without the label if its absence is allowed."""
        allowed_types = self._allowing.get((label, values))
        if allowed_types is None:
            allowed_types = 0
            for had, types in self._types_by(label).items():
                if had.meets(values) or (had.is_negative and values.is_negative):
                    allowed_types |= types
            self._allowing[label, values] = allowed_types
        return allowed_types

    def label_sets(self, label: str) -> tuple[Allowed, ...]:
        """The distinct sets of values that instance types have of a label; none for a label that types do not have."""
        return tuple(self._types_by(label)) if label in _SAID else ()

    def values(self, types: int, label: str) -> set[str]:
        """The distinct values of a label among types."""
        distinct: set[str] = set()
        for had, those in self._types_by(label).items():
            if those & types:
                distinct |= had.values
        return distinct

    def offerings(self, requirements: Requirements) -> Iterator[tuple[str, str]]:
        """The capacity types and zones that requirements allow; empty if they require a capacity reservation."""
        # No offering has these labels: only a requirement for their absence is met.
        reserved = (requirements.by_label[label] for label in RESERVATION if label in requirements.by_label)
        if not all(values.is_negative for values in reserved):
            return
        capacity_types, zones = requirements.get(CAPACITY_TYPE), requirements.get(ZONE)
        for capacity_type, zone in self.prices:
            if capacity_types.has(capacity_type) and zones.has(zone):
                yield capacity_type, zone

    def fits(self, amounts: Mapping[str, int]) -> int:
        """The types whose allocatable covers these amounts, in billionths."""
        fitting_types = self.usable
        for name, amount in amounts.items():
            fitting_types &= self.fitting[name].at_least(amount)
        return fitting_types

    @property
    def has_spot_prices(self) -> bool:
        """Whether any spot price is known."""
        return any(price is not None for (capacity_type, _), prices in self.prices.items() if capacity_type == SPOT for price in prices)

    def price(self, index: int, offerings: Sequence[tuple[str, str]], spot_at_most: float = NO_PRICE) -> float:
        """The lowest price of a type among offerings, in USD per hour; `NO_PRICE` if none is available.

        Args:
            index: index of the type.
            offerings: capacity types and zones.
            spot_at_most: spot offerings above this price are ignored.
        """
        least = NO_PRICE
        for offering in offerings:
            price = self.prices[offering][index]
            if price is not None and price < least and not (offering[0] == SPOT and price > spot_at_most):
                least = price
        return least

    def _mask(self, flags: Iterator[bool]) -> int:
        return sum(1 << index for index, flag in enumerate(flags) if flag)

    def _offerings(self, catalog: Catalog, settings: NodeSettings, spot_ratio: float | None) -> dict[tuple[str, str], list[float | None]]:
        spot = {name: {price.zone: price.usd_per_h for price in prices} for name, prices in catalog.spot.items()}
        offerings: dict[tuple[str, str], list[float | None]] = {}
        for zone in self.zones:
            sold = [_sold(instance, zone, settings) for instance in self.types]
            on_demand = [instance.on_demand_usd_per_h if offered else None for instance, offered in zip(self.types, sold, strict=True)]
            offerings[ON_DEMAND, zone] = on_demand
            if spot_ratio is None:
                listed = [spot.get(instance.name, {}).get(zone) for instance in self.types]
            else:
                whole = (instance.on_demand_usd_per_h for instance in self.types)
                listed = [None if price is None else round(price * spot_ratio, 4) for price in whole]
            kept = zip(listed, self.types, sold, strict=True)
            offerings[SPOT, zone] = [price if offered and instance.spot else None for price, instance, offered in kept]
        return offerings

    def _types_by(self, label: str) -> dict[Allowed, int]:
        """The types by their values of a label."""
        by_value = self._by_label.get(label)
        if by_value is None:
            same: dict[tuple[str, ...], int] = {}
            bit = 1
            for instance in self.types:
                values = label_values(label, instance, self.region, self.zones) if label in _SAID else ()
                same[values] = same.get(values, 0) | bit
                bit <<= 1
            by_value = self._by_label[label] = {one_of(values): types for values, types in same.items()}
        return by_value


def market(catalog: Catalog, settings: NodeSettings, zones: Sequence[str], spot_ratio: float | None) -> Market:
    """The market of a catalog; the most recent ones are cached, because a plan uses the same one many times."""
    key = (id(catalog), settings.model_dump_json(), tuple(zones), spot_ratio)
    if key not in _markets:
        if len(_markets) >= _MAX_MARKETS:
            _markets.pop(next(iter(_markets)))
        # The catalog is kept too: its id stays unique as long as it exists.
        _markets[key] = (catalog, Market(catalog, settings, zones, spot_ratio))
    return _markets[key][1]


def bits(mask: int) -> Iterator[int]:
    """The indices of the set bits, ascending."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


class _Steps:
    """For one resource: the types with at least a given amount."""

    def __init__(self, amounts: Sequence[int]) -> None:
        self._amounts: list[int] = []
        self._types: list[int] = []
        types = 0
        for index in sorted(range(len(amounts)), key=amounts.__getitem__, reverse=True):
            types |= 1 << index
            if self._amounts and self._amounts[-1] == -amounts[index]:
                self._types[-1] = types
            else:
                # Negated, so that the list ascends.
                self._amounts.append(-amounts[index])
                self._types.append(types)

    def at_least(self, amount: int) -> int:
        """The types with this amount or more."""
        step = bisect_right(self._amounts, -amount)
        return self._types[step - 1] if step else 0

    def more_than(self, amount: int) -> int:
        """The types with more than this amount."""
        step = bisect_left(self._amounts, -amount)
        return self._types[step - 1] if step else 0

    def largest(self, types: int) -> int:
        """The largest amount among these types; 0 for no types."""
        return next((-amount for amount, those in zip(self._amounts, self._types, strict=True) if those & types), 0)


class _StepsByResource(dict[str, _Steps]):
    """The thresholds of each resource, built on first use: most plans need two of the nine."""

    def __init__(self, types: Sequence[InstanceType], rooms: Sequence[Allocatable], amounts: Mapping[str, _Amount]) -> None:
        super().__init__()
        self._types, self._rooms, self._amounts = types, rooms, amounts

    def __missing__(self, name: str) -> _Steps:
        amount = self._amounts[name]
        steps = self[name] = _Steps([amount(instance, room) for instance, room in zip(self._types, self._rooms, strict=True)])
        return steps


def _sold(instance: InstanceType, zone: str, settings: NodeSettings) -> bool:
    return zone in instance.zones and not (settings.ami_family == "AL2023" and instance.family == "a1")


_Amount = Callable[[InstanceType, Allocatable], int]
_DEVICES: dict[str, _Amount] = {
    NVIDIA_GPU: lambda instance, room: extras(instance).nvidia_gpus * NANO,
    AMD_GPU: lambda instance, room: extras(instance).amd_gpus * NANO,
    GAUDI: lambda instance, room: extras(instance).gaudis * NANO,
    NEURON: lambda instance, room: extras(instance).neurons * NANO,
    NEURON_CORE: lambda instance, room: extras(instance).neuron_cores * NANO,
}
# Allocatable for pods, DaemonSets included, in billionths.
_HELD: dict[str, _Amount] = {
    CPU: lambda instance, room: room.cpu_millicores * NANO // 1000,
    MEMORY: lambda instance, room: room.memory_mib * _MIB * NANO,
    PODS: lambda instance, room: room.pods * NANO,
    EPHEMERAL_STORAGE: lambda instance, room: room.ephemeral_storage_mib * _MIB * NANO,
    **_DEVICES,
}
# Capacity that counts against a limit, in billionths.
_CAPACITY: dict[str, _Amount] = {
    CPU: lambda instance, room: room.capacity_cpu_millicores * NANO // 1000,
    MEMORY: lambda instance, room: room.capacity_mib * _MIB * NANO,
    PODS: lambda instance, room: room.pods * NANO,
    EPHEMERAL_STORAGE: lambda instance, room: room.capacity_ephemeral_storage_mib * _MIB * NANO,
    **_DEVICES,
}


def held_by(market: Market, index: int) -> dict[str, int]:
    """Allocatable of a node of this type for pods, DaemonSets included, by resource, in billionths."""
    return {name: amount(market.types[index], market.allocatable[index]) for name, amount in _HELD.items()}


def capacity_of(market: Market, index: int) -> dict[str, int]:
    """Capacity of a node of this type that counts against a limit, by resource, in billionths."""
    return {name: amount(market.types[index], market.allocatable[index]) for name, amount in _CAPACITY.items()}
