"""The shipped production cluster and variants of it, and the targets of small jobs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.infra.cluster import cluster
from penstock.infra.environment_file import load
from penstock.sizing.cluster import Cluster, KafkaCluster, Quotas
from penstock.sizing.load.load import Load
from penstock.sizing.placement.node_pool_manifests import NodePool
from penstock.sizing.plan import plan
from penstock.sizing.planned import Plan
from penstock.sizing.targets import DriverTarget, ExecutorTarget, Parallelism, Targets
from penstock.sizing.violation import Violation

_CLUSTER = cluster(load("production"))
assert _CLUSTER is not None
PRODUCTION = _CLUSTER
CAPACITY = "karpenter.sh/capacity-type"
Requirements = Mapping[str, Any]
LOAD = Load(events_per_s=20_000.0, event_bytes=1000, events_per_slot_per_s=2000.0)


def targets(parallelism: int = 91, slots: int = 13, **changes: Any) -> Targets:
    """By default 7 executors of 2 GiB and 1 core, as many as 91 tasks need with 13 slots each."""
    executor = {"memory_mib": 2048, "cpu_millicores": 1000, **changes.pop("executor", {})}
    driver = {"memory_mib": 2048, "cpu_millicores": 1000, **changes.pop("driver", {})}
    return Targets(
        parallelism=Parallelism(value=parallelism, source="load" if changes.get("load") else "spec"),
        executor=ExecutorTarget(slots=slots, **executor),
        driver=DriverTarget(**driver),
        **changes,
    )


def with_pool(
    name: str, result: Cluster = PRODUCTION, *, limits: dict[str, str] | None = None, requirements: Requirements | None = None
) -> Cluster:
    """The cluster with a pool that has other limits, or other requirements.

    Args:
        name: of the pool.
        result: the cluster.
        limits: in place of its own.
        requirements: label -> its values, or a whole requirement, or None to take it out.
    """
    return result.model_copy(
        update={
            "node_pools": tuple(_changed(pool, limits, requirements or {}) if pool.name == name else pool for pool in result.node_pools)
        }
    )


def _changed(pool: NodePool, limits: dict[str, str] | None, requirements: Requirements) -> NodePool:
    document = pool.model_dump(by_alias=True, exclude_unset=True)
    if limits is not None:
        document["spec"]["limits"] = limits
    node = document["spec"]["template"]["spec"]
    kept = [one for one in node["requirements"] if one["key"] not in requirements]
    node["requirements"] = kept + [
        values if isinstance(values, dict) else {"key": key, "operator": "In", "values": values}
        for key, values in requirements.items()
        if values is not None
    ]
    return NodePool.model_validate(document)


def with_kafka(**changes: Any) -> Cluster:
    return PRODUCTION.model_copy(update={"kafka": KafkaCluster(**changes)})


def with_quotas(**quotas: int) -> Cluster:
    return PRODUCTION.model_copy(update={"quotas": Quotas(**quotas)})


def codes(result: Plan) -> list[str]:
    return [str(violation.code) for violation in result.violations]


def violation(wanted: Targets, result: Cluster, code: str) -> Violation:
    """The only violation of a plan, which has this code."""
    made = plan(wanted, result)
    assert codes(made) == [code]
    assert not made.feasible
    return made.violations[0]
