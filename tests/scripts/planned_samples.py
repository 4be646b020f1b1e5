"""Plans to draw: the shipped job's pods on nodes of the shipped catalog, put there by hand."""

from __future__ import annotations

from pathlib import Path

from penstock.jobs.spec import load as load_spec
from penstock.jobs.targets import targets
from penstock.sizing.catalog import catalog
from penstock.sizing.catalog.allocatable import NodeSettings, allocatable
from penstock.sizing.cost import prices
from penstock.sizing.cost.bill import bill
from penstock.sizing.cost.billed import Bill
from penstock.sizing.cost.usage import BucketUsage, ClusterUsage, NatUsage, NodeUsage, StandardKafka, Usage
from penstock.sizing.load.load import Load
from penstock.sizing.plan import plan
from penstock.sizing.planned import Plan
from penstock.sizing.planned_nodes import NodeExample, NodeGroup, NodesPlan, PlacedPods, PodsOnNode

ROOT = Path(__file__).resolve().parents[2]
SPEC = ROOT / "jobs" / "specs" / "user_credit.yaml"
HOSTILE = """<script>alert("1")</script>&'"""

DRIVER = PodsOnNode(group="driver", count=1, cpu_millicores=2000, memory_mib=2048)
EXECUTORS = PodsOnNode(group="executor", count=2, cpu_millicores=4000, memory_mib=16384)
LOAD = Load(events_per_s=9_000.0, event_bytes=600, events_per_slot_per_s=2_000.0, peak_factor=1.3, restart_s=120.0, catch_up_s=600.0)


def example(instance_type: str) -> NodeExample:
    sample = catalog.shipped().get(instance_type)
    assert sample is not None
    pods_get = allocatable(sample, NodeSettings())
    return NodeExample(
        instance_type=sample.name,
        vcpu=sample.vcpu,
        memory_mib=sample.memory_mib,
        allocatable_cpu_millicores=pods_get.cpu_millicores,
        allocatable_memory_mib=pods_get.memory_mib,
        daemon_sets_cpu_millicores=280,
        daemon_sets_memory_mib=232,
        on_demand_usd_per_h=sample.on_demand_usd_per_h,
    )


def group(instance_type: str | None, *pods: PodsOnNode, count: int = 1, at_s: float | None = None, pool: str = "executors") -> NodeGroup:
    return NodeGroup(
        count=count,
        node_pool=pool,
        pods=pods,
        capacity_type="spot" if pool == "executors" else "on-demand",
        allocation_strategy="price-capacity-optimized" if pool == "executors" else "lowest-price",
        may_become=212 if pool == "executors" else 24,
        launch_types=(instance_type,) if instance_type else (),
        example=example(instance_type) if instance_type else None,
        error="" if instance_type else "no instance type is large enough",
        at_s=at_s,
    )


def nodes(one_batch: PlacedPods | None = None, staged: PlacedPods | None = None, environment: str = "production") -> NodesPlan:
    """By default two nodes, and in the staged order three."""
    driver = group("m6i.xlarge", DRIVER, pool="drivers")
    one_batch = one_batch or placed(driver, group("m6i.4xlarge", EXECUTORS))
    single = EXECUTORS.model_copy(update={"count": 1})
    staged = staged or placed(driver.model_copy(update={"at_s": 0.0}), group("r6i.2xlarge", single, count=2, at_s=75.0))
    return NodesPlan(environment=environment, region="us-east-1", catalog_date="2026-07", one_batch=one_batch, staged=staged)


def placed(*groups: NodeGroup, unschedulable: dict[str, int] | None = None, reasons: dict[str, str] | None = None) -> PlacedPods:
    return PlacedPods(groups=groups, nodes=sum(one.count for one in groups), unschedulable=unschedulable or {}, reasons=reasons or {})


def cost(label: str = "executors") -> Bill:
    usage = Usage(
        nodes=(
            NodeUsage(label="driver", instance_types=("m6i.xlarge", "m7i.xlarge"), capacity_type="on-demand", count=1),
            NodeUsage(label=label, instance_types=("m6i.4xlarge", "r6i.4xlarge", "c6i.4xlarge"), capacity_type="spot", count=1),
        ),
        clusters=(ClusterUsage(label="cluster", count=1, support="standard"),),
        kafka=(StandardKafka(label="brokers", broker_type="kafka.m7g.large", brokers=3, storage_gib=900),),
        buckets=(BucketUsage(label="checkpoints", stored_gib=40, put_requests_per_month=9e6, get_requests_per_month=1e6),),
        nat=NatUsage(gateways=3, gib_per_month=220),
    )
    return bill(usage, prices.shipped(), catalog.shipped(), spot_ratio=0.4)


def planned(with_nodes: NodesPlan | None = None, with_cost: Bill | None = None) -> Plan:
    """The shipped job's plan with these nodes and this bill."""
    return plan(targets(load_spec(SPEC))).model_copy(update={"nodes": with_nodes, "cost": with_cost})
