"""Catalogs and instance types as tables and as documents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, get_args

from pydantic.alias_generators import to_camel

from penstock.scripts.render import table
from penstock.scripts.render.screen import Screen
from penstock.scripts.render.table import Column
from penstock.sizing.catalog.allocatable import Allocatable, NodeSettings, allocatable
from penstock.sizing.catalog.catalog import Catalog
from penstock.sizing.catalog.instance_type import InstanceType
from penstock.sizing.catalog.labels import labels
from penstock.sizing.planned import SCHEMA_VERSION
from penstock.sizing.units import memory_text

_AmiFamily = Literal["AL2023", "Bottlerocket"]
AMI_FAMILIES: tuple[_AmiFamily, ...] = get_args(_AmiFamily)


def listing(catalogs: Sequence[tuple[str, Catalog]], screen: Screen) -> str:
    """Each catalog in a row.

    Args:
        catalogs: each with the name of its file, or ``shipped``.
        screen: where it goes.
    """
    numbers = [Column(heading, right=True) for heading in ("types", "on-demand prices", "spot prices")]
    columns = [Column("catalog"), Column("region"), Column("date"), *numbers, Column("source", wraps=True)]
    rows = [
        [name, known.region, known.date, f"{len(known.types):,}", f"{_priced(known):,}", f"{len(known.spot):,}", known.source]
        for name, known in catalogs
    ]
    return "\n".join(table.table(columns, rows, screen, indent=0)) + "\n"


def listing_document(catalogs: Sequence[tuple[str, Catalog]]) -> dict[str, Any]:
    """The same as a document."""
    return {
        "schemaVersion": SCHEMA_VERSION,
        "catalogs": [
            {
                "catalog": name,
                "region": known.region,
                "date": known.date,
                "types": len(known.types),
                "typesWithOnDemandPrice": _priced(known),
                "typesWithSpotPrice": len(known.spot),
                "source": known.source,
            }
            for name, known in catalogs
        ],
    }


def facts(known: Catalog, instance: InstanceType, screen: Screen) -> str:
    """One instance type: its resources, prices and labels, and what is allocatable on a node."""
    rows = [f"{instance.name} in {known.region}, {known.date}: {known.source}", "", *table.facts(_facts(known, instance), screen)]
    rows += ["", "allocatable to pods and DaemonSets, with default node settings", *_allocatable_rows(instance, screen)]
    shown = ((label, ", ".join(values)) for label, values in sorted(_labels(known, instance).items()))
    rows += ["", "labels", *table.facts(shown, screen)]
    return "\n".join(rows) + "\n"


def facts_document(known: Catalog, instance: InstanceType) -> dict[str, Any]:
    """The same as a document."""
    return {
        "schemaVersion": SCHEMA_VERSION,
        "region": known.region,
        "date": known.date,
        "source": known.source,
        "instanceType": _camel(instance.model_dump(mode="json")),
        "spot": [_camel(quote.model_dump()) for quote in known.spot.get(instance.name, ())],
        "allocatable": {family: _camel(_allocatable(instance, family)._asdict()) for family in AMI_FAMILIES},
        "labels": {label: list(values) for label, values in sorted(_labels(known, instance).items())},
    }


def _facts(known: Catalog, instance: InstanceType) -> Iterator[tuple[str, str]]:
    cpus = f"{instance.vcpu} vCPU{'' if instance.vcpu == 1 else 's'}"
    kinds = [word for word, so in (("bare metal", instance.bare_metal), ("burstable", instance.burstable)) if so]
    age = "current generation" if instance.current_generation else "previous generation"
    yield "machine", ", ".join([f"{cpus}, {memory_text(instance.memory_mib)}, {instance.arch}", *kinds, age])
    if instance.local_nvme_gib or instance.gpus or instance.accelerators:
        disks = f"{instance.local_nvme_gib:,} GB of local NVMe disks" if instance.local_nvme_gib else ""
        gpus = f"GPUs: {instance.gpus}" if instance.gpus else ""
        accelerators = f"accelerators: {instance.accelerators}" if instance.accelerators else ""
        yield "devices", ", ".join(part for part in (disks, gpus, accelerators) if part)
    interfaces = f"{instance.enis} interfaces of {instance.ipv4_per_eni} IPv4 addresses"
    yield "network", f"{instance.network_baseline_gbps:g} Gbit/s, {instance.network_peak_gbps:g} in a burst; {interfaces}"
    yield "EBS", "unknown" if instance.ebs_baseline_mbps is None else f"{instance.ebs_baseline_mbps:,} Mbit/s"
    yield "zones", ", ".join(instance.zones) or "unknown"
    price = instance.on_demand_usd_per_h
    yield "on-demand", "unknown" if price is None else f"{price:g} USD an hour"
    yield "spot", _spot(known, instance)


def _spot(known: Catalog, instance: InstanceType) -> str:
    quotes = known.spot.get(instance.name, ())
    if quotes:
        return ", ".join(f"{quote.zone} {quote.usd_per_h:g}" for quote in quotes) + " USD an hour"
    fetch = f"unknown; fetch with penstock catalog refresh --region {known.region}"
    return fetch if instance.spot else "not sold as spot"


def _allocatable_rows(instance: InstanceType, screen: Screen) -> list[str]:
    numbers = [Column(heading, right=True) for heading in ("cpu", "memory", "pods", "ephemeral storage")]
    rows = [[family, *_cells(_allocatable(instance, family))] for family in AMI_FAMILIES]
    return table.table([Column("AMI family"), *numbers], rows, screen)


def _cells(pods_get: Allocatable) -> list[str]:
    storage = memory_text(pods_get.ephemeral_storage_mib)
    return [f"{pods_get.cpu_millicores:,}m", f"{pods_get.memory_mib:,} MiB", f"{pods_get.pods:,}", storage]


def _allocatable(instance: InstanceType, family: _AmiFamily) -> Allocatable:
    return allocatable(instance, NodeSettings(ami_family=family))


def _labels(known: Catalog, instance: InstanceType) -> dict[str, tuple[str, ...]]:
    return labels(instance, known.region, instance.zones)


def _priced(known: Catalog) -> int:
    return sum(1 for kind in known.types if kind.on_demand_usd_per_h is not None)


def _camel(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {to_camel(name): value for name, value in fields.items()}
