"""The bill: a price for every quantity of a usage, per hour and per month.

A line without a known price is unknown and makes the total a lower bound; it never counts as 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from penstock.sizing.catalog.catalog import Catalog
from penstock.sizing.cost.billed import Bill, Line, Service, sum_of
from penstock.sizing.cost.errors import RegionsDiffer
from penstock.sizing.cost.month import HOURS_PER_MONTH
from penstock.sizing.cost.node_prices import node_price
from penstock.sizing.cost.prices import Price, Prices
from penstock.sizing.cost.usage import (
    GP3_FREE_IOPS,
    GP3_FREE_MIBPS,
    BucketUsage,
    ClusterUsage,
    ExpressKafka,
    KafkaUsage,
    NatUsage,
    NodeUsage,
    RootVolume,
    ServerlessKafka,
    StandardKafka,
    Usage,
    ZoneTraffic,
)
from penstock.sizing.cost.usd import UsdRange

# Source: Amazon S3's price list: the price here applies to the first 50 TB; storage above it is cheaper.
S3_FIRST_TIER_GIB = 50 * 1024


class _Amount(NamedTuple):
    """The input of one line: quantity, item and price."""

    service: Service
    item: str
    quantity: float
    unit: str
    price: Price
    per: Literal["h", "month"]
    note: str = ""


def bill(usage: Usage, prices: Prices, catalog: Catalog, spot_ratio: float | None = None) -> Bill:
    """Prices a usage.

    Args:
        usage: quantities to price.
        prices: prices of the region.
        catalog: instance types of the same region, with their prices.
        spot_ratio: assumed spot price as a share of the on-demand price, 0 to 1, for types without a spot price in the catalog.

    Raises:
        RegionsDiffer: SIZ-052.
    """
    if prices.region != catalog.region:
        raise RegionsDiffer(
            path="prices",
            given=prices.region,
            need=f"prices of {catalog.region}, the catalog's region",
            fix=f"prices of {catalog.region}, or a catalog of {prices.region}: penstock catalog refresh --region {prices.region}",
        )
    lines = tuple(_lines(usage, prices, catalog, spot_ratio))
    services = tuple(dict.fromkeys(line.service for line in lines))
    return Bill(
        region=prices.region,
        lines=lines,
        services={service: sum_of([line for line in lines if line.service == service]) for service in services},
        total=sum_of(lines),
        assumptions=tuple(_assumptions(lines)),
    )


def _lines(usage: Usage, prices: Prices, catalog: Catalog, spot_ratio: float | None) -> Iterator[Line]:
    for nodes in usage.nodes:
        if nodes.count:
            yield _nodes(nodes, catalog, spot_ratio)
    for amount in _amounts(usage, prices):
        if amount.quantity:
            yield _line(amount, prices)


def _amounts(usage: Usage, prices: Prices) -> Iterator[_Amount]:
    for nodes in usage.nodes:
        yield from _root_volumes(f"{nodes.label}, {nodes.capacity_type}, root volumes", nodes.root_volume, nodes.count, prices)
    for cluster in usage.clusters:
        yield _cluster(cluster, prices)
    for kafka in usage.kafka:
        yield from _kafka(kafka, prices)
    for bucket in usage.buckets:
        yield from _bucket(bucket, prices)
    if usage.nat is not None:
        yield from _nat(usage.nat, prices)
    for traffic in usage.traffic:
        yield _traffic(traffic, prices)


def _root_volumes(item: str, volume: RootVolume, count: int, prices: Prices) -> Iterator[_Amount]:
    iops, mibps = count * (volume.iops - GP3_FREE_IOPS), count * (volume.mibps - GP3_FREE_MIBPS)
    yield _Amount("EBS", item, count * volume.gib, "GiB gp3", prices.price("gp3_usd_per_gib_month"), "month")
    yield _Amount("EBS", f"{item}, IOPS", iops, f"IOPS above {GP3_FREE_IOPS:,}", prices.price("gp3_usd_per_iops_month"), "month")
    price = prices.price("gp3_usd_per_mibps_month")
    yield _Amount("EBS", f"{item}, throughput", mibps, f"MiB/s above {GP3_FREE_MIBPS}", price, "month")


def _cluster(cluster: ClusterUsage, prices: Prices) -> _Amount:
    price = prices.price(f"eks_{cluster.support}_usd_per_h")
    return _Amount("EKS", f"{cluster.label}, {cluster.support} support", cluster.count, "cluster", price, "h")


def _kafka(kafka: KafkaUsage, prices: Prices) -> Iterator[_Amount]:
    match kafka:
        case StandardKafka():
            yield from _standard(kafka, prices)
        case ExpressKafka():
            yield from _express(kafka, prices)
        case ServerlessKafka():
            yield from _serverless(kafka, prices)


def _standard(kafka: StandardKafka, prices: Prices) -> Iterator[_Amount]:
    item, throughput = kafka.label, prices.price("msk_throughput_usd_per_mibps_month")
    yield _Amount("MSK", f"{item}, {kafka.broker_type}", kafka.brokers, "broker", prices.broker(kafka.broker_type), "h")
    yield _Amount("MSK", f"{item}, volumes", kafka.storage_gib, "GiB", prices.price("msk_storage_usd_per_gib_month"), "month")
    yield _Amount("MSK", f"{item}, tiered storage", kafka.tiered_gib, "GiB", prices.price("msk_tiered_usd_per_gib_month"), "month")
    yield _Amount("MSK", f"{item}, provisioned throughput", kafka.throughput_mibps, "MiB/s", throughput, "month")


def _express(kafka: ExpressKafka, prices: Prices) -> Iterator[_Amount]:
    item, storage = kafka.label, prices.price("msk_express_storage_usd_per_gib_month")
    yield _Amount("MSK", f"{item}, {kafka.broker_type}", kafka.brokers, "broker", prices.broker(kafka.broker_type), "h")
    yield _Amount("MSK", f"{item}, storage", kafka.storage_gib, "GiB", storage, "month")
    yield _Amount("MSK", f"{item}, data in", kafka.in_gib_per_month, "GiB", prices.price("msk_express_in_usd_per_gib"), "month")


def _serverless(kafka: ServerlessKafka, prices: Prices) -> Iterator[_Amount]:
    item, storage = kafka.label, prices.price("msk_serverless_storage_usd_per_gib_month")
    yield _Amount("MSK", f"{item}, serverless", 1, "cluster", prices.price("msk_serverless_cluster_usd_per_h"), "h")
    yield _Amount("MSK", f"{item}, partitions", kafka.partitions, "partition", prices.price("msk_serverless_partition_usd_per_h"), "h")
    yield _Amount("MSK", f"{item}, storage", kafka.storage_gib, "GiB", storage, "month")
    yield _Amount("MSK", f"{item}, data in", kafka.in_gib_per_month, "GiB", prices.price("msk_serverless_in_usd_per_gib"), "month")
    yield _Amount("MSK", f"{item}, data out", kafka.out_gib_per_month, "GiB", prices.price("msk_serverless_out_usd_per_gib"), "month")


def _bucket(bucket: BucketUsage, prices: Prices) -> Iterator[_Amount]:
    above = bucket.stored_gib > S3_FIRST_TIER_GIB
    note = f"all at the price of the first {S3_FIRST_TIER_GIB:,} GiB; what is above is cheaper" if above else ""
    puts, gets = bucket.put_requests_per_month / 1000, bucket.get_requests_per_month / 1000
    item, stored = bucket.label, prices.price("s3_standard_usd_per_gib_month")
    yield _Amount("S3", f"{item}, stored", bucket.stored_gib, "GiB", stored, "month", note)
    yield _Amount("S3", f"{item}, PUT requests", puts, "1,000 requests", prices.price("s3_put_usd_per_1000"), "month")
    yield _Amount("S3", f"{item}, GET requests", gets, "1,000 requests", prices.price("s3_get_usd_per_1000"), "month")


def _nat(nat: NatUsage, prices: Prices) -> Iterator[_Amount]:
    yield _Amount("NAT", "gateways", nat.gateways, "gateway", prices.price("nat_gateway_usd_per_h"), "h")
    yield _Amount("NAT", "data", nat.gib_per_month, "GiB", prices.price("nat_usd_per_gib"), "month")


def _traffic(traffic: ZoneTraffic, prices: Prices) -> _Amount:
    price = prices.price("zone_crossing_usd_per_gib_each_direction")
    note = "each GiB is charged twice: as it leaves a zone and as it arrives in another"
    return _Amount("Data transfer", f"{traffic.label}, between zones", 2 * traffic.gib_per_month, "GiB", price, "month", note)


def _line(amount: _Amount, prices: Prices) -> Line:
    usd = amount.price.usd
    known = None if usd is None else UsdRange.exactly(usd).times(amount.quantity)
    per_hour = amount.per == "h"
    return Line(
        service=amount.service,
        item=amount.item,
        quantity=amount.quantity,
        unit=amount.unit,
        unit_price_usd=None if usd is None else UsdRange.exactly(usd),
        per=amount.per,
        usd_per_h=known if known is None or per_hour else known.times(1 / HOURS_PER_MONTH),
        usd_per_month=known.times(HOURS_PER_MONTH) if known is not None and per_hour else known,
        basis="unknown" if usd is None else "secondary" if amount.price.secondary else "listed",
        complete=usd is not None,
        price_source=prices.source,
        price_date=prices.date,
        note=amount.note if usd is not None else _joined(f"unknown price: {amount.price.name}", amount.note),
    )


def _nodes(nodes: NodeUsage, catalog: Catalog, spot_ratio: float | None) -> Line:
    price = node_price(nodes, catalog, spot_ratio)
    usd_per_h = None if price.usd_per_h is None else price.usd_per_h.times(nodes.count)
    return Line(
        service="EC2",
        item=f"{nodes.label}, {nodes.capacity_type}",
        quantity=nodes.count,
        unit="node",
        unit_price_usd=price.usd_per_h,
        per="h",
        usd_per_h=usd_per_h,
        usd_per_month=None if usd_per_h is None else usd_per_h.times(HOURS_PER_MONTH),
        basis=price.basis,
        complete=price.complete,
        price_source=catalog.source,
        price_date=catalog.date,
        note=price.note,
    )


def _assumptions(lines: Sequence[Line]) -> Iterator[str]:
    yield f"a month has {HOURS_PER_MONTH} hours, as AWS Pricing Calculator counts"
    yield "before tax, without discounts, savings plans or a free tier"
    if any(line.basis == "assumed" for line in lines):
        yield "spot prices are assumed where a line says so; penstock catalog refresh takes them from AWS"
    if any(line.basis == "secondary" for line in lines):
        yield "prices marked secondary come from documents, not from AWS's own data"


def _joined(*notes: str) -> str:
    return "; ".join(note for note in notes if note)
