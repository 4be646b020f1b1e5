"""From the plans of a session's jobs to the session's own: their sizes added."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from penstock.sizing.cluster import Cluster
from penstock.sizing.cost.billed import Bill
from penstock.sizing.disk_throughput import DiskThroughput
from penstock.sizing.kafka.partitions import most_partitions
from penstock.sizing.plan.cluster_feasibility import cluster_violations
from penstock.sizing.plan.cluster_plan import bill_of
from penstock.sizing.plan.job_pods import EXECUTOR, pod_groups
from penstock.sizing.plan.nearest_fit import Wanted
from penstock.sizing.plan.nodes import allocation_of, plan_nodes
from penstock.sizing.plan.root_volume import planned_root_volume, root_volume_violations
from penstock.sizing.plan.session.driver import driver_of, session_driver_needs, session_driver_storage
from penstock.sizing.plan.session.executor import (
    executor_of,
    executor_violations,
    overhead_violations,
    session_disk,
    session_overhead,
    session_storage,
)
from penstock.sizing.plan.session.planned import DriverSize, SessionPlan
from penstock.sizing.plan.session.settings import session_settings
from penstock.sizing.plan.shared_kafka import shared_kafka
from penstock.sizing.planned import Plan, Pods, Totals
from penstock.sizing.planned_nodes import NodesPlan
from penstock.sizing.violation import Violation


class _InCluster(NamedTuple):
    nodes: NodesPlan | None = None
    cost: Bill | None = None
    violations: tuple[Violation, ...] = ()


def plan_session(jobs: Mapping[str, Plan], cluster: Cluster | None = None, driver: DriverSize | None = None) -> SessionPlan:
    """Plans a session.

    Executors and drivers are those of its jobs, added; a task slot of any executor runs the tasks of any job.

    Args:
        jobs: job -> its plan, at least one.
        cluster: where it runs; None: nodes and cost are not planned.
        driver: that the environment gives it in place of the sum.

    Returns:
        The plan, not `feasible` with SIZ-060 to SIZ-063, with SIZ-010 to SIZ-019 for its pods, or if that of a job is not.
    """
    plans = list(jobs.values())
    storage, overhead, disk = session_storage(jobs), session_overhead(jobs), session_disk(jobs)
    pod, small = driver_of(plans, driver)
    pods = Pods(driver=pod, executor=executor_of(jobs, storage), executor_spread=plans[0].pods.executor_spread)
    unlike = executor_violations(jobs)
    settings = session_settings({name: plan.spark_conf for name, plan in jobs.items()}, pods, alike=not unlike)
    in_cluster = _in_cluster(jobs, pods, settings.shared, disk, cluster)
    # What the executors have to hold means nothing while it is not clear what they are.
    violations = (*(unlike or overhead_violations(jobs, overhead)), *small, *settings.violations, *in_cluster.violations)
    return SessionPlan(
        jobs=tuple(jobs),
        totals=_totals(plans, pods),
        pods=pods,
        executor_overhead=overhead,
        driver_needs=session_driver_needs(plans),
        executor_storage=storage,
        executor_disk=disk,
        driver_storage=session_driver_storage(plans),
        tasks_at_a_time=min(pods.executor.count * (pods.executor.slots or 1), sum(plan.tasks_at_a_time for plan in plans)),
        spark_conf=settings.shared,
        job_conf=settings.own,
        nodes=in_cluster.nodes,
        cost=in_cluster.cost,
        feasible=not violations and all(plan.feasible for plan in plans),
        violations=violations,
    )


def _totals(plans: list[Plan], pods: Pods) -> Totals:
    executor = pods.executor
    return Totals(
        executors=executor.count,
        pods=executor.count + pods.driver.count,
        executor_memory_mib=executor.count * executor.memory_mib,
        executor_cpu_millicores=executor.count * executor.request_cpu_millicores,
        subtasks=sum(plan.totals.subtasks for plan in plans),
    )


def _in_cluster(jobs: Mapping[str, Plan], pods: Pods, conf: Mapping[str, str], disk: DiskThroughput, cluster: Cluster | None) -> _InCluster:
    if cluster is None or cluster.catalog.is_unknown:
        return _InCluster()
    groups, allocations = pod_groups(pods, conf, cluster), {EXECUTOR: allocation_of(conf)}
    nodes = plan_nodes(groups, cluster, allocations)
    disks = {EXECUTOR: disk}
    nodes = nodes.model_copy(update={"root_volume": planned_root_volume(nodes, disks, cluster)})
    faults = [*cluster_violations(Wanted(groups, cluster, allocations), nodes, {}), *root_volume_violations(nodes, disks, cluster)]
    partitions = sum(most_partitions(plan.kafka.topics for plan in jobs.values()).values())
    loads = [plan.kafka.load for plan in jobs.values() if plan.kafka.load]
    # What the brokers can't carry is said of all jobs of the environment together.
    kafka, _ = shared_kafka(loads, partitions, cluster)
    checkpoints = [plan.state.checkpoint for plan in jobs.values()]
    return _InCluster(
        nodes, bill_of(nodes, checkpoints, [kafka] if kafka else [], cluster, partitions), tuple(fault for _, fault in faults)
    )
