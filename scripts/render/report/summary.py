"""Summary of the plan: the pods and their sums, topics, Kafka, state and checkpoint."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.scripts.render import plan_table
from penstock.scripts.render.node_shares import counted, gib_text
from penstock.scripts.render.report.markup import Markup, element, joined
from penstock.scripts.render.report.tables import Column, bullets, facts, table
from penstock.sizing.planned import Plan, PlannedPod, StatePlan
from penstock.sizing.units import cpu_text, memory_text


def section(plan: Plan) -> Markup:
    """The pods, their sums, and the job's requirements on Kafka and its checkpoint."""
    columns, rows = _pod_table(plan)
    totals = plan.totals
    stages = ", ".join(f"{stage.name} {stage.tasks:,}" for stage in plan.stages)
    pairs = [
        ("in total", f"{counted(totals.pods, 'pod')}; {_resources(plan)} for the executors"),
        ("per slot", f"{memory_text(plan.per_slot.memory_mib)}, {cpu_text(plan.per_slot.cpu_millicores)}"),
        ("in Spark", f"{counted(plan.tasks_at_a_time, 'task')} at a time, stage after stage: {stages}"),
        ("in Flink", f"{counted(totals.subtasks, 'subtask')} at a parallelism of {plan.parallelism.value:,}"),
    ]
    topics = ", ".join(f"{topic} {counted(count, 'partition')}" for topic, count in plan.kafka.topics.items())
    if topics:
        pairs.append(("topics", topics))
    pairs += [*_kafka(plan), ("state", _state(plan.state)), ("checkpoint", _checkpoint(plan.state))]
    return joined(
        [
            element("p", f"{plan_table.headline(plan)}.", class_="lead"),
            table(columns, rows, caption="Pods"),
            facts(pairs),
            bullets(plan.notes, class_="aside"),
        ]
    )


def _kafka(plan: Plan) -> Iterator[tuple[str, str]]:
    load = plan.kafka.load
    if load is None:
        return
    rates = f"{load.peak_in_mibps:,.1f} MiB/s in and {load.peak_out_mibps:,.1f} MiB/s out at the peak"
    if load.cluster is not None:
        yield "Kafka", f"{load.cluster.brokers:,} x {load.cluster.broker_type} for {rates}; bound by {load.cluster.binding}"
    elif load.serverless is not None:
        yield "Kafka", f"serverless, {counted(load.serverless.partitions, 'partition')} for {rates}"
    else:
        yield "Kafka", rates


def _state(state: StatePlan) -> str:
    if not state.stores:
        return "none"
    stores = counted(state.stores, "store")
    if state.state_bytes is None:
        return f"{state.backend}, {stores}"
    return f"{state.backend}, {stores}, {gib_text(state.state_bytes // 1024**2)} in all"


def _checkpoint(state: StatePlan) -> str:
    traffic = state.checkpoint
    objects = traffic.objects_per_day + traffic.snapshot_objects_per_day
    return f"{objects:,.0f} objects and {traffic.requests_per_day:,.0f} requests a day"


def _resources(plan: Plan) -> str:
    return f"{memory_text(plan.totals.executor_memory_mib)} and {cpu_text(plan.totals.executor_cpu_millicores)}"


def _pod_table(plan: Plan) -> tuple[list[Column], list[list[str]]]:
    pods = (("driver", plan.pods.driver), ("executor", plan.pods.executor))
    names = ["count", "memory", "heap", "overhead", "off-heap", "Python", "disk", "cpu request", "cpu limit", "slots"]
    shown = [name for name in names if name not in ("off-heap", "Python") or any(_pod_cells(pod)[name] != "0 MiB" for _, pod in pods)]
    columns = [Column("pod"), *(Column(name, numeric=True) for name in shown)]
    return columns, [[kind, *(_pod_cells(pod)[name] for name in shown)] for kind, pod in pods]


def _pod_cells(pod: PlannedPod) -> dict[str, str]:
    return {
        "count": f"{pod.count:,}",
        "memory": memory_text(pod.memory_mib),
        "heap": memory_text(pod.heap_mib),
        "overhead": memory_text(pod.overhead_mib),
        "off-heap": memory_text(pod.off_heap_mib),
        "Python": memory_text(pod.pyspark_mib),
        "disk": memory_text(pod.request_ephemeral_storage_mib),
        "cpu request": cpu_text(pod.request_cpu_millicores),
        "cpu limit": "none" if pod.limit_cpu_millicores is None else cpu_text(pod.limit_cpu_millicores),
        "slots": f"{pod.slots:,}" if pod.slots else "-",
    }
