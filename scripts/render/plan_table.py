"""A plan as tables: a headline, the pods, the totals, and notes."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence

from penstock.scripts.render.bytes_text import bytes_text
from penstock.scripts.render.money import usd
from penstock.scripts.render.screen import Screen
from penstock.scripts.render.table import Column, facts, table
from penstock.sizing.cost.billed import Bill
from penstock.sizing.cost.usd import UsdRange
from penstock.sizing.explained import Explanation
from penstock.sizing.file_splits import FilesRead
from penstock.sizing.planned import Plan, PlannedPod, PlanRange, SpotPlan, ThroughputPlan
from penstock.sizing.planned_nodes import NodeGroup, NodesPlan
from penstock.sizing.units import cpu_text, memory_text

# What a read limit is derived from -> what that is.
_LIMITED_BY = {
    "load": "what the load's slots process in a trigger",
    "time": "what the slots read at best in a trigger",
    "memory": "the executors' memory",
}


def render(plan: Plan, name: str, screen: Screen) -> str:
    """The plan as text, as wide as the screen except for longer names.

    Args:
        plan: the plan.
        name: of the job.
        screen: where it is printed.
    """
    heads, *pods = _pod_rows(plan)
    columns = [Column(head, right=at > 0) for at, head in enumerate(heads)]
    rows = [f"{name}: {headline(plan)}", "", *table(columns, pods, screen), ""]
    return "\n".join([*rows, *facts(labelled(_facts(plan)), screen)]) + "\n"


def render_explanations(plan: Plan, screen: Screen) -> str:
    """Each number of the plan with its rule and inputs, as text."""
    return "\n" + "\n".join(line for explanation in plan.explain for line in _explained(explanation, screen.prose)) + "\n"


def headline(plan: Plan) -> str:
    """The plan in one line: ``2 executors x 5 slots run 10 tasks at a time``."""
    executors, slots, tasks = plan.totals.executors, plan.pods.executor.slots or 1, plan.tasks_at_a_time
    runs = "runs" if executors == 1 else "run"
    line = f"{_count(executors, 'executor')} x {_count(slots, 'slot')} {runs} {_count(tasks, 'task')} at a time"
    return line if plan.feasible else f"NOT FEASIBLE: {line}"


def _facts(plan: Plan) -> Iterator[tuple[str, Sequence[str]]]:
    totals = plan.totals
    pods = f"{_count(totals.executors, 'executor')}, {_count(totals.pods, 'pod')} with the driver"
    resources = f"{memory_text(totals.executor_memory_mib)} and {cpu_text(totals.executor_cpu_millicores)} for the executors"
    yield "in total", [f"{pods}; {resources}"]
    yield "per slot", [f"{memory_text(plan.per_slot.memory_mib)} and {cpu_text(plan.per_slot.cpu_millicores)}"]
    yield "in Spark", [f"{_count(plan.tasks_at_a_time, 'task')} at a time, stage after stage: {_stages(plan)}"]
    operators = _count(totals.subtasks // plan.parallelism.value, "operator")
    yield "in Flink", [f"{_count(totals.subtasks, 'subtask')}: {operators} x a parallelism of {plan.parallelism.value}"]
    yield from _load_facts(plan)
    if plan.kafka.topics:
        yield "topics", [", ".join(f"{topic} {_count(count, 'partition')}" for topic, count in plan.kafka.topics.items())]
    if plan.read_limit is not None:
        yield "reads", [f"at most {plan.read_limit.records:,} records a micro-batch, by {_LIMITED_BY[plan.read_limit.binding]}"]
    if plan.files:
        yield "files", [_files(name, read, totals.executors * (plan.pods.executor.slots or 1)) for name, read in plan.files.items()]
    yield "state", [_state(plan)]
    yield "disk", [_disk(plan), *_disk_throughput(plan)]
    if plan.pods.executor_spread is not None:
        yield "spread", [f"executors over {plan.pods.executor_spread.text}"]
    yield from _node_facts(plan)
    if plan.notes:
        yield "notes", plan.notes


def _node_facts(plan: Plan) -> Iterator[tuple[str, Sequence[str]]]:
    if plan.nodes is not None:
        yield "nodes", node_lines(plan.nodes)
    if plan.spot is not None:
        yield "spot", list(_spot(plan.spot))
    if plan.cost is not None:
        yield "cost", cost_lines(plan.cost)
    if plan.range is not None:
        yield "range", [_range(plan.range)]


def node_lines(nodes: NodesPlan) -> list[str]:
    """The nodes after a first start, one line per kind, and the pods without a node."""
    lines = [_node_line(group) for group in nodes.staged.groups]
    lines += [_left_out(group, count, nodes.staged.reasons) for group, count in nodes.staged.unschedulable.items()]
    return lines or ["none"]


def _left_out(group: str, count: int, reasons: Mapping[str, str]) -> str:
    return f"{_count(count, f'{group} pod')} without a node: {reasons.get(group, '')}"


def cost_lines(cost: Bill) -> list[str]:
    """The cost and the date of its prices: `penstock cost` has the lines."""
    total = cost.total
    least = "" if total.complete else "at least "
    dates = sorted({line.price_date for line in cost.lines})
    return [f"{least}{usd(total.usd_per_month)} USD a month, {usd(total.usd_per_h, decimals=2)} an hour; prices of {' and '.join(dates)}"]


def _node_line(group: NodeGroup) -> str:
    pods = ", ".join(_count(pods.count, pods.group) for pods in group.pods)
    types = "no type" if group.example is None else f"{_count(len(group.launch_types), 'type')}, the cheapest {group.example.instance_type}"
    each = " each" if group.count > 1 else ""
    return f"{group.count} {group.capacity_type} of pool {group.node_pool} ({types}): {pods}{each}"


def _state(plan: Plan) -> str:
    state = plan.state
    requests = f"{state.checkpoint.requests_per_day:,.0f} PUT requests a day for the checkpoint"
    if not state.stores:
        return f"none; {requests}"
    size = "" if state.state_bytes is None else f" with {memory_text(-(-state.state_bytes // 1024**2))}"
    return f"{_count(state.stores, 'store')} in {state.backend}{size}; {requests}"


def _files(name: str, read: FilesRead, slots: int) -> str:
    """The stage that reads the files of a source."""
    batches = "" if read.micro_batches == 1 else f" in each of {read.micro_batches:,} micro-batches"
    splits = f"{_count(read.splits, 'split')} of at most {bytes_text(read.split_bytes)}, by {read.binding}"
    runs = f"{_count(read.tasks, 'task')}{batches}, {_count(read.waves, 'wave')} over {_count(slots, 'slot')}"
    return f"{name}: {_count(read.files, 'file')}, {bytes_text(read.size_bytes)}: {splits}; {runs}"


def _disk(plan: Plan) -> str:
    """Ephemeral storage of the pods; what is assumed has no limit."""
    driver, executor, needs = plan.pods.driver, plan.pods.executor, plan.executor_storage
    sizes = f"{memory_text(driver.request_ephemeral_storage_mib)} for the driver, {memory_text(executor.request_ephemeral_storage_mib)}"
    what = "" if executor.limit_ephemeral_storage_mib is not None else ", assumed and not limited"
    state = f", {memory_text(needs.state_mib)} of it for state" if needs.state_mib else ""
    return f"{sizes} for each executor{state}{what}"


def _disk_throughput(plan: Plan) -> Iterator[str]:
    """What executors write and read per second, and the volumes of their nodes where the load says what they are."""
    disk = plan.executor_disk
    if disk.mibps and plan.nodes is not None:
        volume = plan.nodes.root_volume
        each = f"{disk.mibps:,.0f} MiB/s and {disk.iops:,} IOPS for each executor"
        yield f"{each}; root volumes of {volume.mibps:,} MiB/s and {volume.iops:,} IOPS"


def _spot(spot: SpotPlan) -> Iterator[str]:
    drain = spot.drain
    if drain is None:
        yield f"{spot.nodes} spot nodes; the length of a bounded run's tasks is unknown, so is whether a drain fits"
    elif drain.fits:
        yield f"a drain fits: a batch of {drain.needed_s:g} s ends within {drain.available_s:g} s"
    else:
        way = "spark.decommission.enabled is off" if not drain.available_s else f"the grace period is {drain.available_s:g} s"
        yield f"a drain does not fit: a batch takes up to {drain.needed_s:g} s and {way}; the batch is reprocessed"
    for loss in spot.losses[:1]:
        recovery = "never caught up" if loss.recovery_s is None else f"caught up {loss.recovery_s:,.0f} s"
        yield f"{loss.lost_nodes} of {spot.nodes} spot nodes lost: {loss.lag_events:,.0f} events of lag, {recovery} after the new node"


def _load_facts(plan: Plan) -> Iterator[tuple[str, Sequence[str]]]:
    throughput = plan.throughput
    if throughput is None:
        return
    able = throughput.capability
    catch_up = "never catches up" if able.catch_up_s is None else f"catches up in {able.catch_up_s:,.0f} s"
    yield (
        "load",
        [
            f"{throughput.peak_events_per_s:,.0f} events/s at the peak; {able.capacity_events_per_s:,.0f} events/s can be processed, "
            f"{able.sustained_peak_events_per_s:,.0f} sustained; {catch_up} after a restart"
        ],
    )
    yield "rate", [_rate(throughput)]
    if plan.kafka.load is not None and plan.kafka.load.serverless is not None:
        used = plan.kafka.load.serverless
        kept = f"{used.storage_gib:,.0f} GiB of storage"
        yield "brokers", [f"none, serverless: {used.partitions:,} partitions, bound by {used.binding}; {kept}"]
    if plan.kafka.load is not None and plan.kafka.load.cluster is not None:
        cluster = plan.kafka.load.cluster
        storage = cluster.storage.ebs_gib or cluster.storage.express_gib
        yield "brokers", [f"{cluster.brokers} x {cluster.broker_type}, bound by {cluster.binding}; {storage:,.0f} GiB of storage"]


def _rate(throughput: ThroughputPlan) -> str:
    rate = throughput.events_per_slot_per_s
    if rate is None:
        return throughput.basis_text
    return f"{rate.typical:,.0f} events/s a slot, {rate.low:,.0f} to {rate.high:,.0f}: {throughput.basis_text}"


def _range(ends: PlanRange) -> str:
    """By the spread of the profile, from its fast to its slow end."""
    low, high = ends.low, ends.high
    parts = [_from_to(low.executors, high.executors, "executor")]
    if low.nodes is not None and high.nodes is not None:
        parts.append(_from_to(low.nodes, high.nodes, "node"))
    if low.usd_per_month is not None and high.usd_per_month is not None:
        parts.append(f"{usd(UsdRange(low=low.usd_per_month.low, high=high.usd_per_month.high))} USD a month")
    unmet = "" if high.feasible else "; not feasible at its slow end"
    return f"{', '.join(parts)}, by the profile's spread{unmet}"


def _from_to(low: int, high: int, noun: str) -> str:
    return _count(low, noun) if low == high else f"{low:,} to {_count(high, noun)}"


def _stages(plan: Plan) -> str:
    return ", ".join(f"{stage.name} {stage.tasks:,}" for stage in plan.stages)


def _pod_rows(plan: Plan) -> list[list[str]]:
    pods = [("driver", plan.pods.driver), ("executor", plan.pods.executor)]
    optional = [
        ("off-heap", [memory_text(pod.off_heap_mib) for _, pod in pods], any(pod.off_heap_mib for _, pod in pods)),
        ("python", [memory_text(pod.pyspark_mib) for _, pod in pods], any(pod.pyspark_mib for _, pod in pods)),
    ]
    columns = [
        ["pod", *(kind for kind, _ in pods)],
        ["count", *(f"{pod.count:,}" for _, pod in pods)],
        ["memory", *(memory_text(pod.memory_mib) for _, pod in pods)],
        ["heap", *(memory_text(pod.heap_mib) for _, pod in pods)],
        ["overhead", *(memory_text(pod.overhead_mib) for _, pod in pods)],
        *([title, *texts] for title, texts, shown in optional if shown),
        ["cpu", *(_cpu(pod) for _, pod in pods)],
        ["slots", *(f"{pod.slots:,}" if pod.slots else "-" for _, pod in pods)],
    ]
    return [list(row) for row in zip(*columns, strict=True)]


def _cpu(pod: PlannedPod) -> str:
    limit = f", limit {cpu_text(pod.limit_cpu_millicores)}" if pod.limit_cpu_millicores is not None else ""
    return cpu_text(pod.request_cpu_millicores) + limit


def labelled(blocks: Iterable[tuple[str, Sequence[str]]]) -> Iterator[tuple[str, str]]:
    """Each block's lines, the label before the first of them."""
    for label, lines in blocks:
        yield from ((label if at == 0 else "", line) for at, line in enumerate(lines))


def _explained(explanation: Explanation, width: int) -> Iterator[str]:
    value = "none" if explanation.value is None else explanation.value
    yield f"{explanation.number} = {value}"
    yield _indented(explanation.rule, width)
    if explanation.inputs:
        yield _indented("with " + ", ".join(f"{name} {value}" for name, value in explanation.inputs.items()), width)
    if explanation.binding:
        yield _indented(f"bound by {explanation.binding}", width)


def _indented(text: str, width: int) -> str:
    return textwrap.fill(text, width, initial_indent=" " * 4, subsequent_indent=" " * 4, break_long_words=False, break_on_hyphens=False)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
