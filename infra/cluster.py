"""Conversion of an environment to the cluster model of sizing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from penstock.infra.environment import Environment
from penstock.infra.errors import BadNodePool, UnreadableCatalog
from penstock.infra.manifests.daemon_set import daemon_set
from penstock.infra.manifests.node_pool import node_pool
from penstock.infra.manifests.pod import tolerations
from penstock.infra.parts.kafka import Kafka
from penstock.infra.parts.nodes import Nodes, PodPlace
from penstock.infra.parts.quotas import Quotas
from penstock.sizing import cluster as sized
from penstock.sizing.catalog import catalog as catalogs
from penstock.sizing.catalog.allocatable import NodeSettings
from penstock.sizing.catalog.catalog import Catalog
from penstock.sizing.cost import prices as price_lists
from penstock.sizing.cost.errors import NoShippedPrices, RegionsDiffer
from penstock.sizing.cost.prices import Prices
from penstock.sizing.errors import PenstockError, raise_all
from penstock.sizing.placement.node_pool_manifests import NodePool
from penstock.sizing.placement.pod_manifests import DaemonSet

_GIB_OF_MIB = 1024


def cluster(environment: Environment, catalog: Catalog | None = None, prices: Prices | None = None) -> sized.Cluster | None:
    """The cluster of an environment, as sizing models it.

    Args:
        environment: the environment.
        catalog: instance types and their prices instead of the environment's own.
        prices: all other prices instead of the environment's own.

    Returns:
        None if the environment has no cluster, like the embedded default.

    Raises:
        PenstockError: INF-004 for a pool that Karpenter would reject, INF-005, SIZ-030, SIZ-031, SIZ-051 or SIZ-052 for the catalog and
            the prices; several are raised as `Faults`.
    """
    spec = environment.spec
    if spec.network is None or spec.eks is None or spec.nodes is None:
        return None
    types = _of_region(catalog or _catalog(environment), spec.region)
    return sized.Cluster(
        name=environment.name,
        region=spec.region,
        eks_version=spec.eks.version,
        extended_support=spec.eks.extended_support,
        control_plane_billed=spec.eks.existing is None,
        karpenter_version=spec.eks.karpenter_version,
        zones=tuple(spec.network.zones),
        nat_gateways=spec.network.nat_gateways,
        node_settings=node_settings(spec.nodes),
        root_volume=_root_volume(spec.nodes),
        node_pools=_node_pools(environment, spec.nodes),
        daemon_sets=tuple(DaemonSet.model_validate(daemon_set(one)) for one in spec.nodes.daemon_sets),
        driver=_place(spec.nodes.pods.driver),
        executor=_place(spec.nodes.pods.executor),
        kafka=_kafka(spec.kafka),
        quotas=_quotas(spec.quotas),
        spot_ratio=spec.nodes.spot_ratio,
        boot_s=spec.nodes.boot / 1000,
        catalog=types,
        prices=prices or (None if types.is_unknown else _prices(environment, types.date)),
    )


def node_settings(nodes: Nodes) -> NodeSettings:
    """The settings that affect the allocatable resources of an environment's nodes."""
    return NodeSettings(
        ami_family=nodes.ami_family,
        max_pods=nodes.max_pods,
        reserved_enis=nodes.reserved_enis,
        vm_memory_overhead_percent=nodes.vm_memory_overhead_percent,
        root_volume_gib=max(1, nodes.root_volume // _GIB_OF_MIB),
        measured_capacity_mib=nodes.measured_capacity,
    )


def _root_volume(nodes: Nodes) -> sized.VolumePerformance | None:
    given = nodes.root_volume_performance
    return None if given is None else sized.VolumePerformance(iops=given.iops, mibps=given.throughput)


def _node_pools(environment: Environment, nodes: Nodes) -> tuple[NodePool, ...]:
    """All pools as Karpenter reads them; raises the faults of all of them together."""
    adapter = TypeAdapter(NodePool)
    pools: list[NodePool] = []
    faults: list[PenstockError] = []
    for index, pool in enumerate(nodes.pools):
        try:
            pools.append(adapter.validate_python(node_pool(pool, node_class=environment.node_class)))
        except ValidationError as invalid:
            refused = [_refused(index, pool.name, detail) for detail in invalid.errors(include_url=False)]
            faults += [environment.locate(fault, "spec", "nodes", "pools", index) for fault in refused]
    raise_all(faults)
    return tuple(pools)


def _refused(index: int, name: str, detail: Any) -> BadNodePool:
    context = detail.get("ctx") or {}
    inside = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in detail["loc"])
    return BadNodePool(
        path=f"spec.nodes.pools[{index}] ({name}){inside}",
        given=str(context.get("given") or detail["input"])[:80],
        need=str(context.get("need") or detail["msg"]),
        fix=str(context.get("fix") or "see Karpenter's NodePool documentation"),
    )


def _place(place: PodPlace) -> sized.PodPlace:
    return sized.PodPlace(node_selector=place.node_selector, tolerations=tuple(tolerations(place.tolerations)))


def _kafka(kafka: Kafka | None) -> sized.KafkaCluster | None:
    if kafka is None:
        return None
    return sized.KafkaCluster(
        kind=kafka.kind,
        broker_type=kafka.broker_type,
        brokers=kafka.brokers,
        replication=kafka.replication,
        retention_h=kafka.retention / 3_600_000,
        rack_aware=kafka.rack_aware,
        tiered_storage=kafka.tiered_storage,
    )


def _quotas(quotas: Quotas) -> sized.Quotas:
    return sized.Quotas.model_validate(quotas.model_dump())


def _catalog(environment: Environment) -> Catalog:
    """The environment's own snapshot, or the shipped catalog of its region."""
    spec = environment.spec
    if spec.catalog is None:
        return catalogs.shipped(spec.region)
    fix = f"penstock catalog refresh --region {spec.region} --out {spec.catalog}"
    return catalogs.read(_text(environment, "catalog", spec.catalog, "a snapshot written by `penstock catalog refresh`", fix))


def _of_region(catalog: Catalog, region: str) -> Catalog:
    if catalog.region != region:
        need = f"a catalog of the environment's region, {region}"
        raise RegionsDiffer(path="catalog", given=catalog.region, need=need, fix=f"penstock catalog refresh --region {region}")
    return catalog


def _prices(environment: Environment, catalog_date: str) -> Prices:
    """The environment's own prices, or the shipped ones of its region; if neither exists, only instances have prices."""
    spec = environment.spec
    if spec.prices is not None:
        fix = "use the format of sizing/data/prices.us-east-1.json"
        return price_lists.read(_text(environment, "prices", spec.prices, "a price file of the region", fix))
    try:
        return price_lists.shipped(spec.region)
    except NoShippedPrices:
        return Prices(region=spec.region, date=catalog_date, source=f"no prices for {spec.region}")


def _text(environment: Environment, field: str, file: str, what: str, fix: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        need = f"{what}: {getattr(error, 'strerror', None) or error}"
        raise environment.locate(UnreadableCatalog(given=file, need=need, fix=fix), "spec", field) from None
