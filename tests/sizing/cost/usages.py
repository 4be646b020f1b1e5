"""Usages and a small catalog for cost tests."""

from __future__ import annotations

from hypothesis import strategies as st

from penstock.sizing.catalog.catalog import Catalog, SpotPrice
from penstock.sizing.catalog.instance_type import InstanceType
from penstock.sizing.cost.usage import (
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

ZONES = ("us-east-1a", "us-east-1b")


def instance(name: str, on_demand_usd_per_h: float | None) -> InstanceType:
    return InstanceType(
        name=name,
        vcpu=2,
        memory_mib=8192,
        arch="amd64",
        hypervisor="nitro",
        bare_metal=False,
        burstable=False,
        current_generation=True,
        gpus=0,
        accelerators=0,
        local_nvme_gib=0,
        enis=3,
        ipv4_per_eni=10,
        network_baseline_gbps=0.75,
        network_peak_gbps=10.0,
        ebs_baseline_mbps=650,
        spot=True,
        on_demand_usd_per_h=on_demand_usd_per_h,
        zones=ZONES,
    )


CATALOG = Catalog(
    region="us-east-1",
    date="2026-11-20",
    source="a catalog for tests",
    types=(instance("m1.cheap", 0.1), instance("m1.dear", 0.4), instance("m1.quoted", 0.2), instance("m1.unpriced", None)),
    spot={"m1.quoted": (SpotPrice(zone=ZONES[0], usd_per_h=0.06), SpotPrice(zone=ZONES[1], usd_per_h=0.09))},
)

EVERYTHING = Usage(
    nodes=(
        NodeUsage(label="driver", instance_types=("m1.cheap",), capacity_type="on-demand", count=1),
        NodeUsage(
            label="executors",
            instance_types=("m1.cheap", "m1.quoted"),
            capacity_type="spot",
            count=2,
            root_volume=RootVolume(gib=50, iops=4000, mibps=250),
        ),
    ),
    clusters=(ClusterUsage(label="cluster"), ClusterUsage(label="old", support="extended")),
    kafka=(
        StandardKafka(broker_type="kafka.m7g.large", brokers=3, storage_gib=600, tiered_gib=1000, throughput_mibps=300),
        ServerlessKafka(label="small", partitions=60, storage_gib=10, in_gib_per_month=100, out_gib_per_month=200),
        ExpressKafka(label="fast", broker_type="express.m7g.large", brokers=3, storage_gib=0, in_gib_per_month=5000),
    ),
    buckets=(BucketUsage(label="checkpoints", stored_gib=20, put_requests_per_month=1e6, get_requests_per_month=2e6),),
    nat=NatUsage(gateways=3, gib_per_month=50),
    traffic=(ZoneTraffic(label="reads from Kafka", gib_per_month=1000), ZoneTraffic(label="shuffle", gib_per_month=1)),
)

_amounts = st.floats(min_value=0, max_value=1e9, allow_subnormal=False)
_counts = st.integers(min_value=0, max_value=10_000)
_names = st.sampled_from(["executors", "driver", "spare"])
_types = st.lists(st.sampled_from([*(kind.name for kind in CATALOG.types), "m9.missing"]), min_size=1, unique=True).map(tuple)

_nodes = st.builds(
    NodeUsage,
    label=_names,
    instance_types=_types,
    capacity_type=st.sampled_from(["spot", "on-demand"]),
    count=_counts,
    zones=st.sampled_from([(), ZONES[:1], ("us-east-1f",)]),
    or_on_demand=st.booleans(),
)
_brokers = st.sampled_from(["kafka.m7g.large", "kafka.m5.large", "kafka.m9.none"])
_kafka: st.SearchStrategy[KafkaUsage] = st.one_of(
    st.builds(StandardKafka, broker_type=_brokers, brokers=_counts, storage_gib=_amounts, tiered_gib=_amounts, throughput_mibps=_amounts),
    st.builds(ExpressKafka, broker_type=st.just("express.m7g.large"), brokers=_counts, storage_gib=_amounts, in_gib_per_month=_amounts),
    st.builds(ServerlessKafka, partitions=_counts, storage_gib=_amounts, in_gib_per_month=_amounts, out_gib_per_month=_amounts),
)

usages = st.builds(
    Usage,
    nodes=st.lists(_nodes, max_size=4).map(tuple),
    clusters=st.lists(st.builds(ClusterUsage, label=_names, support=st.sampled_from(["standard", "extended"])), max_size=2).map(tuple),
    kafka=st.lists(_kafka, max_size=2).map(tuple),
    buckets=st.lists(
        st.builds(BucketUsage, label=_names, stored_gib=_amounts, put_requests_per_month=_amounts, get_requests_per_month=_amounts),
        max_size=2,
    ).map(tuple),
    nat=st.none() | st.builds(NatUsage, gateways=_counts, gib_per_month=_amounts),
    traffic=st.lists(st.builds(ZoneTraffic, label=_names, gib_per_month=_amounts), max_size=2).map(tuple),
)
