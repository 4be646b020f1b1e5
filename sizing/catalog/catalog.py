"""The instance types of one region at one date, with their prices: the shipped catalog and snapshots of other regions."""

from __future__ import annotations

import csv
from collections.abc import Callable
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from penstock.sizing.catalog.errors import BadCatalog, NoShippedCatalog
from penstock.sizing.catalog.instance_type import InstanceType

SHIPPED_REGION = "us-east-1"
# Source: EC2's on-demand prices of 2026-07, Linux, shared tenancy, with the data sheets of the same time.
SHIPPED_DATE = "2026-07"
SHIPPED_SOURCE = "EC2 on-demand prices and data sheets of 2026-07, shipped with Penstock"

_DATA = Path(__file__).parent.parent / "data"


class SpotPrice(BaseModel):
    """The spot price of one instance type in one zone.

    Args:
        zone: availability zone.
        usd_per_h: USD per hour, usually above 0.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    zone: str
    usd_per_h: float = Field(ge=0, allow_inf_nan=False)


class Catalog(BaseModel):
    """The instance types of one region at one date.

    Args:
        region: AWS region.
        date: ISO date, a month or a day: ``2026-07``, ``2026-11-21``.
        source: source of the prices, for display.
        types: all instance types, by name.
        spot: spot prices by instance type; a missing type has no known spot price.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    region: str
    date: str
    source: str
    types: tuple[InstanceType, ...]
    spot: dict[str, tuple[SpotPrice, ...]] = {}

    @cached_property
    def _by_name(self) -> dict[str, InstanceType]:
        return {instance.name: instance for instance in self.types}

    def get(self, name: str) -> InstanceType | None:
        """The instance type of this name, or None if the catalog does not contain it."""
        return self._by_name.get(name)

    @property
    def is_unknown(self) -> bool:
        """Whether it is that of a region whose instance types are not known."""
        return not self.types

    @cached_property
    def families(self) -> frozenset[str]:
        """All instance families: ``m7g``, ``r6i`` ..."""
        return frozenset(instance.family for instance in self.types)


@cache
def shipped(region: str = SHIPPED_REGION) -> Catalog:
    """The shipped catalog, loaded once.

    Raises:
        NoShippedCatalog: SIZ-030, for a region other than us-east-1.
    """
    if region != SHIPPED_REGION:
        raise NoShippedCatalog(
            path="region",
            given=region,
            need=f"{SHIPPED_REGION}, the only shipped region",
            fix=f"{how_to_get(region)}; `penstock size` plans pods and brokers without it",
        )
    # The file is shipped with Penstock, and a test compares this result with a validated load: validating it on each start would take most
    # of the time of `penstock size`.
    types = tuple(InstanceType.model_construct(**row) for row in _rows((_DATA / f"instance-types.{region}.csv").read_text("utf-8")))
    return Catalog.model_construct(region=region, date=SHIPPED_DATE, source=SHIPPED_SOURCE, types=types, spot={})


def how_to_get(region: str) -> str:
    """The command that writes a region's snapshot."""
    return f"penstock catalog refresh --region {region} --out catalog.{region}.json"


def unknown(region: str) -> Catalog:
    """A catalog of a region whose instance types are not known: nothing can be planned that needs them."""
    return Catalog(region=region, date="", source=f"no instance types of {region}", types=())


def read(text: str) -> Catalog:
    """Loads a snapshot as written by ``penstock catalog refresh``: a `Catalog` as JSON.

    Raises:
        BadCatalog: SIZ-031, with the first fault.
    """
    try:
        return Catalog.model_validate_json(text)
    except ValidationError as fault:
        first = fault.errors(include_url=False)[0]
        path = ".".join(str(part) for part in first["loc"])
        raise BadCatalog(path=path, need=first["msg"], fix="regenerate it: penstock catalog refresh --region REGION") from None


def _rows(text: str) -> list[dict[str, Any]]:
    lines = csv.reader(text.splitlines())
    columns = ["name" if column == "type" else column for column in next(lines)]
    reads = [_READS[column] for column in columns]
    return [{column: read_cell(cell) for column, read_cell, cell in zip(columns, reads, line, strict=True)} for line in lines]


def _boolean(cell: str) -> bool:
    return cell == "true"


def _known_int(cell: str) -> int | None:
    return int(cell) if cell else None


def _known_float(cell: str) -> float | None:
    return float(cell) if cell else None


_ZONES: dict[str, tuple[str, ...]] = {}


def _zones(cell: str) -> tuple[str, ...]:
    return _ZONES.setdefault(cell, tuple(cell.split()))


_READS: dict[str, Callable[[str], Any]] = {
    "name": str,
    "vcpu": int,
    "memory_mib": int,
    "arch": str,
    "hypervisor": str,
    "bare_metal": _boolean,
    "burstable": _boolean,
    "current_generation": _boolean,
    "gpus": int,
    "accelerators": int,
    "local_nvme_gib": int,
    "enis": int,
    "ipv4_per_eni": int,
    "network_baseline_gbps": float,
    "network_peak_gbps": float,
    "ebs_baseline_mbps": _known_int,
    "spot": _boolean,
    "on_demand_usd_per_h": _known_float,
    "zones": _zones,
}
