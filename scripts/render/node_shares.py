"""The shares of a planned node's CPU and memory: the system's reserve, DaemonSets, pods and free capacity.

The pictures of a plan, on the terminal and in the report, are drawn from these.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Literal, NamedTuple

from penstock.sizing.planned_nodes import NodeExample, NodeGroup, PlacedPods, PodsOnNode

Kind = Literal["reserve", "daemonSets", "driver", "executor", "pod", "free"]
ResourceName = Literal["cpu", "memory"]

KIND_NAMES: dict[Kind, str] = {
    "reserve": "system reserve",
    "daemonSets": "DaemonSets",
    "driver": "driver",
    "executor": "executor",
    "pod": "pod",
    "free": "free",
}


class Part(NamedTuple):
    """A share of a node's CPU or memory.

    Args:
        kind: what uses it.
        name: for people; the group of a pod.
        amount: millicores or MiB.
    """

    kind: Kind
    name: str
    amount: int


class Shares(NamedTuple):
    """One resource of a node.

    Args:
        resource: CPU or memory.
        capacity: of the instance type, in millicores or MiB.
        parts: in drawing order; together they are the capacity.
    """

    resource: ResourceName
    capacity: int
    parts: tuple[Part, ...]

    def amount(self, *kinds: Kind) -> int:
        """The sum of the parts of these kinds."""
        return sum(part.amount for part in self.parts if part.kind in kinds)

    @property
    def free(self) -> int:
        """What another pod could request."""
        return self.amount("free")

    @property
    def used_percent(self) -> int:
        """Share of the capacity that is used, rounded to a whole per cent."""
        return (200 * (self.capacity - self.free) + self.capacity) // (2 * self.capacity)

    def text(self, amount: int) -> str:
        """An amount of the resource with its unit."""
        return cores_text(amount) if self.resource == "cpu" else gib_text(amount)


def shares(group: NodeGroup) -> tuple[Shares, Shares] | None:
    """CPU and memory of one node of a group; None if no instance type can be launched."""
    return None if group.example is None else (_cpu(group.example, group.pods), _memory(group.example, group.pods))


def kind_of(pod_group: str) -> Kind:
    """Whether pods of a group are a driver, executors or something else."""
    name = pod_group.rsplit("/", 1)[-1]
    return "driver" if name == "driver" else "executor" if name == "executor" else "pod"


def same_nodes(first: PlacedPods, second: PlacedPods) -> bool:
    """Whether two arrival orders result in the same nodes."""
    return _counted(first) == _counted(second) and first.unschedulable == second.unschedulable


def cores_text(millicores: int) -> str:
    """CPU as ``3.92 cores``."""
    cores = f"{millicores / 1000:,.2f}".rstrip("0").rstrip(".")
    return f"{cores} core{'' if cores == '1' else 's'}"


def gib_text(memory_mib: int) -> str:
    """Memory as ``13.5 GiB``, below 1 GiB as ``232 MiB``."""
    if memory_mib < 1024:
        return f"{memory_mib} MiB"
    return f"{memory_mib / 1024:,.1f}".removesuffix(".0") + " GiB"


def pods_text(pods: tuple[PodsOnNode, ...]) -> list[str]:
    """The pods of a node: ``2 executors of 4 cores, 16 GiB``."""
    return [f"{counted(pod.count, pod.group)} of {cores_text(pod.cpu_millicores)}, {gib_text(pod.memory_mib)}" for pod in pods]


def counted(count: int, noun: str) -> str:
    """A number with its noun: ``1 driver``, ``2 executors``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _cpu(node: NodeExample, pods: tuple[PodsOnNode, ...]) -> Shares:
    capacity, allocatable = node.vcpu * 1000, node.allocatable_cpu_millicores
    each = [(pod, pod.cpu_millicores) for pod in pods]
    return Shares("cpu", capacity, tuple(_parts(capacity, allocatable, node.daemon_sets_cpu_millicores, each)))


def _memory(node: NodeExample, pods: tuple[PodsOnNode, ...]) -> Shares:
    capacity, allocatable = node.memory_mib, node.allocatable_memory_mib
    each = [(pod, pod.memory_mib) for pod in pods]
    return Shares("memory", capacity, tuple(_parts(capacity, allocatable, node.daemon_sets_memory_mib, each)))


def _parts(capacity: int, allocatable: int, daemon_sets: int, pods: list[tuple[PodsOnNode, int]]) -> Iterator[Part]:
    yield Part("reserve", KIND_NAMES["reserve"], capacity - allocatable)
    yield Part("daemonSets", KIND_NAMES["daemonSets"], daemon_sets)
    for pod, amount in pods:
        yield from (Part(kind_of(pod.group), pod.group, amount) for _ in range(pod.count))
    yield Part("free", KIND_NAMES["free"], allocatable - daemon_sets - sum(pod.count * amount for pod, amount in pods))


def _counted(placed: PlacedPods) -> Counter[NodeGroup]:
    counts: Counter[NodeGroup] = Counter()
    for group in placed.groups:
        counts[group.model_copy(update={"count": 1, "at_s": None})] += group.count
    return counts
