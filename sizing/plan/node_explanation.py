"""Explanations of a plan's nodes and cost."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.sizing.cost.billed import Line
from penstock.sizing.cost.usage import GP3_FREE_IOPS, GP3_FREE_MIBPS
from penstock.sizing.explained import Explanation
from penstock.sizing.plan.root_volume import IOPS_PER_MIBPS, MOST_IOPS, MOST_MIBPS, STEP_IOPS, STEP_MIBPS
from penstock.sizing.planned import Plan
from penstock.sizing.planned_nodes import NodeGroup, PlacedPods, RootVolumePlan

Inputs = dict[str, int | float | str]


def explain_nodes(draft: Plan) -> tuple[Explanation, ...]:
    """One explanation per number of the nodes and per line of the bill; empty without a cluster."""
    if draft.nodes is None:
        return ()
    one_batch, staged = "all pods in one batch", "the driver first, then executors as Spark requests them"
    return (
        *_placed("nodes.oneBatch", draft.nodes.one_batch, f"{one_batch}, by Karpenter's rules{_spread(draft)}"),
        *_placed("nodes.staged", draft.nodes.staged, f"{staged}, by Karpenter's rules{_spread(draft)}"),
        *_root_volume(draft.nodes.root_volume),
        *_cost(draft),
    )


def _spread(draft: Plan) -> str:
    spread = draft.pods.executor_spread
    return "" if spread is None else f", executors spread over {spread.text}"


def _placed(at: str, placed: PlacedPods, rule: str) -> Iterator[Explanation]:
    inputs: Inputs = {"unschedulable": sum(placed.unschedulable.values())}
    yield Explanation(number=f"{at}.nodes", value=placed.nodes, rule=rule, inputs=inputs)
    for index, group in enumerate(placed.groups):
        yield _group(f"{at}.groups[{index}]", group)


def _group(at: str, group: NodeGroup) -> Explanation:
    pods = ", ".join(f"{pods.count} {pods.group}" for pods in group.pods)
    inputs: Inputs = {"pool": group.node_pool, "podsOnEach": pods, "types": group.may_become, "sentToEc2": len(group.launch_types)}
    rule = (
        "pods are added to a claim until no instance type of its pool fits, or their spread forbids it; one of the 60 cheapest remaining "
        "types is launched"
    )
    return Explanation(number=f"{at}.count", value=group.count, rule=rule, inputs=inputs, binding=_binding(group))


def _binding(group: NodeGroup) -> str:
    """The resource with the highest utilisation on the example node."""
    if group.example is None:
        return ""
    cpu = sum(pods.count * pods.cpu_millicores for pods in group.pods) + group.example.daemon_sets_cpu_millicores
    mib = sum(pods.count * pods.memory_mib for pods in group.pods) + group.example.daemon_sets_memory_mib
    shares = {"cpu": cpu / group.example.allocatable_cpu_millicores, "memory": mib / group.example.allocatable_memory_mib}
    return max(shares, key=lambda name: shares[name])


def _root_volume(volume: RootVolumePlan) -> Iterator[Explanation]:
    at, most = "nodes.rootVolume", "on the node that needs the most"
    rule = f"executors * executorDisk.mibps, {most}"
    yield Explanation(number=f"{at}.neededMibps", value=volume.needed_mibps, rule=rule, inputs={})
    yield Explanation(number=f"{at}.neededIops", value=volume.needed_iops, rule=f"executors * executorDisk.iops, {most}", inputs={})
    rule = f"the environment's; otherwise what is needed, rounded up to {STEP_MIBPS}, from {GP3_FREE_MIBPS} to {MOST_MIBPS:,}"
    yield Explanation(number=f"{at}.mibps", value=volume.mibps, rule=rule, inputs={"neededMibps": volume.needed_mibps})
    rule = (
        f"the environment's; otherwise what is needed, rounded up to {STEP_IOPS}, or {IOPS_PER_MIBPS} per MiB/s if that is more, from "
        f"{GP3_FREE_IOPS:,} to {MOST_IOPS:,}"
    )
    inputs: Inputs = {"neededIops": volume.needed_iops, "mibps": volume.mibps}
    yield Explanation(number=f"{at}.iops", value=volume.iops, rule=rule, inputs=inputs)


def _cost(draft: Plan) -> Iterator[Explanation]:
    if draft.cost is None:
        return
    for line in draft.cost.lines:
        month = line.usd_per_month
        inputs: Inputs = {"quantity": line.quantity, "unit": line.unit, "price": _price(line)}
        inputs |= {"source": line.price_source, "date": line.price_date}
        yield Explanation(
            number=f"cost.lines[{line.service}: {line.item}].usdPerMonth",
            value=None if month is None else round(month.high, 2),
            rule="quantity * price, upper bound; an hour is 1/730 of a month",
            inputs=inputs,
        )


def _price(line: Line) -> str:
    price = line.unit_price_usd
    if price is None:
        return "unknown"
    amount = f"{price.low:g}" if price.low == price.high else f"{price.low:g} to {price.high:g}"
    return f"{amount} USD / {line.per}"
