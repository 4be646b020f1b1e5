"""The memory model of a Flink process, to the byte.

JVM overhead and metaspace are subtracted from the total process memory, and the rest ("Flink memory") is divided. A user sets the total
process memory, the Flink memory, or the components; `task_manager_memory` and `job_manager_memory` derive the others in Flink's order
and reject the same settings as Flink.

Source: Flink 1.20.3 and 2.1.0, ``ProcessMemoryUtils``, ``TaskExecutorFlinkMemoryUtils`` and ``JobManagerFlinkMemoryUtils``; the tests
contain results of both releases' jars.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import NamedTuple, NoReturn, TypeVar

from pydantic import BaseModel, ConfigDict

from penstock.sizing.flink.errors import BadFlinkSetting, FlinkMemoryContradicts, FlinkMemoryMissing
from penstock.sizing.flink.values import MAX_LONG, fraction, memory_bytes
from penstock.sizing.units import MAX_MEMORY_BYTES, MIB, NotAQuantity

TASK_MANAGER = "taskmanager.memory"
JOB_MANAGER = "jobmanager.memory"

# Source: Flink 1.20.3, TaskManagerOptions and JobManagerOptions; the same in 2.1.0.
METASPACE_BYTES = 256 * MIB
OVERHEAD_FRACTION = "0.1"
OVERHEAD_MIN_BYTES = 192 * MIB
OVERHEAD_MAX_BYTES = 1024 * MIB
MANAGED_FRACTION = "0.4"
NETWORK_FRACTION = "0.1"
NETWORK_MIN_BYTES = 64 * MIB
NETWORK_MAX_BYTES = MAX_LONG
FRAMEWORK_BYTES = 128 * MIB
JOB_MANAGER_OFF_HEAP_BYTES = 128 * MIB

# Source: the deprecated keys of the same options.
OLDER_KEYS = {
    f"{TASK_MANAGER}.managed.size": "taskmanager.memory.size",
    f"{TASK_MANAGER}.network.min": "taskmanager.network.memory.min",
    f"{TASK_MANAGER}.network.max": "taskmanager.network.memory.max",
    f"{TASK_MANAGER}.network.fraction": "taskmanager.network.memory.fraction",
}
_MOST_MIB = MAX_MEMORY_BYTES // MIB
_PROCESS = ("process.size", "flink.size", "jvm-metaspace.size", "jvm-overhead.min", "jvm-overhead.max", "jvm-overhead.fraction")
_TASK_PARTS = (
    "framework.heap.size", "framework.off-heap.size", "task.heap.size", "task.off-heap.size",
    "managed.size", "managed.fraction", "network.min", "network.max", "network.fraction",
)  # fmt: skip
# All keys of the model.
MEMORY_KEYS = frozenset(
    [
        *(f"{TASK_MANAGER}.{name}" for name in (*_PROCESS, *_TASK_PARTS)),
        *(f"{JOB_MANAGER}.{name}" for name in (*_PROCESS, "heap.size", "off-heap.size")),
        *OLDER_KEYS.values(),
    ]
)

Value = TypeVar("Value")


class _Memory(BaseModel, ABC):
    """Components common to both kinds of processes."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    metaspace_bytes: int
    overhead_bytes: int

    @property
    @abstractmethod
    def flink_bytes(self) -> int:
        """Process memory less metaspace and overhead."""

    @property
    def process_bytes(self) -> int:
        """Total process memory."""
        return self.flink_bytes + self.metaspace_bytes + self.overhead_bytes

    @property
    def pod_mib(self) -> int:
        """Memory request of the pod: the process memory in whole MiB, rounded down as Flink does."""
        return self.process_bytes // MIB


class TaskManagerMemory(_Memory):
    """A TaskManager's memory in bytes; the eight components add up to the process memory.

    Args:
        framework_heap_bytes: JVM heap of Flink itself.
        task_heap_bytes: JVM heap of operators and heap state.
        framework_off_heap_bytes: direct and native memory of Flink itself.
        task_off_heap_bytes: direct and native memory of operators.
        network_bytes: direct memory of the network buffers between tasks.
        managed_bytes: native memory of RocksDB, sorting and Python workers, divided equally among slots.
        metaspace_bytes: JVM metaspace.
        overhead_bytes: JVM overhead: threads, code cache, garbage collector.
    """

    framework_heap_bytes: int
    task_heap_bytes: int
    framework_off_heap_bytes: int
    task_off_heap_bytes: int
    network_bytes: int
    managed_bytes: int

    @property
    def heap_bytes(self) -> int:
        """The JVM's ``-Xmx``."""
        return self.framework_heap_bytes + self.task_heap_bytes

    @property
    def flink_bytes(self) -> int:
        """Process memory less metaspace and overhead."""
        off_heap = self.framework_off_heap_bytes + self.task_off_heap_bytes
        return self.heap_bytes + off_heap + self.network_bytes + self.managed_bytes


class JobManagerMemory(_Memory):
    """A JobManager's memory in bytes; the four components add up to the process memory."""

    heap_bytes: int
    off_heap_bytes: int

    @property
    def flink_bytes(self) -> int:
        """Process memory less metaspace and overhead."""
        return self.heap_bytes + self.off_heap_bytes


class _Share(NamedTuple):
    """A fraction of a base, clamped to a minimum and a maximum."""

    fraction: float
    least: int
    most: int

    def of(self, base: int) -> int:
        """The fraction of a base that includes it."""
        return min(max(_times(base, self.fraction), self.least), self.most)

    def beside(self, rest: int) -> int:
        """The fraction of a base of which only the remainder is known."""
        return min(max(_times(rest, self.fraction / (1 - self.fraction)), self.least), self.most)


def task_manager_memory(settings: Mapping[str, str]) -> TaskManagerMemory:
    """Derives a TaskManager's memory.

    Args:
        settings: Flink's keys and values, with the pod's memory as ``taskmanager.memory.process.size``; keys other than `MEMORY_KEYS`
            are ignored.

    Raises:
        BadFlinkSetting: SIZ-055.
        FlinkMemoryMissing: SIZ-056.
        FlinkMemoryContradicts: SIZ-057.
    """
    read = _Settings(settings, TASK_MANAGER)
    if read.has("task.heap.size") and read.has("managed.size"):
        parts = _from_task_parts(read)
        jvm = _jvm_beside(read, sum(parts.values()))
    elif read.has("flink.size"):
        flink_bytes = read.memory("flink.size", 0)
        parts = _from_flink_memory(read, flink_bytes, "flink.size")
        jvm = _jvm_beside(read, flink_bytes)
    else:
        jvm = _jvm_within(read, "task.heap.size and taskmanager.memory.managed.size")
        parts = _from_flink_memory(read, read.memory("process.size", 0) - sum(jvm.values()), "process.size")
    return TaskManagerMemory.model_validate(_bounded(read, {**parts, **jvm}))


def job_manager_memory(settings: Mapping[str, str]) -> JobManagerMemory:
    """Derives a JobManager's memory; arguments and errors as in `task_manager_memory`, with keys that start with ``jobmanager.memory``."""
    read = _Settings(settings, JOB_MANAGER)
    off_heap = read.memory("off-heap.size", JOB_MANAGER_OFF_HEAP_BYTES)
    if read.has("heap.size"):
        heap = read.memory("heap.size", 0)
        off_heap = _job_manager_off_heap(read, heap, off_heap)
        jvm = _jvm_beside(read, heap + off_heap)
    elif read.has("flink.size"):
        heap = _rest(read, read.memory("flink.size", 0), off_heap, "flink.size")
        jvm = _jvm_beside(read, heap + off_heap)
    else:
        jvm = _jvm_within(read, "heap.size")
        heap = _rest(read, read.memory("process.size", 0) - sum(jvm.values()), off_heap, "process.size")
    return JobManagerMemory.model_validate(_bounded(read, {"heap_bytes": heap, "off_heap_bytes": off_heap, **jvm}))


class _Settings:
    """The settings of one kind of process, parsed on access."""

    def __init__(self, settings: Mapping[str, str], prefix: str) -> None:
        self._settings = settings
        self._prefix = prefix

    def key(self, name: str) -> str:
        """The key as the user wrote it: the current one, or the deprecated one if only that is set."""
        key = f"{self._prefix}.{name}"
        older = OLDER_KEYS.get(key, key)
        return older if key not in self._settings and older in self._settings else key

    def has(self, name: str) -> bool:
        return self.key(name) in self._settings

    def memory(self, name: str, default: int) -> int:
        return self._read(name, memory_bytes, default)

    def share(self, name: str, default: str, least: int, most: int) -> _Share:
        """The three settings of a fraction; Flink rejects a minimum above the maximum."""
        bounds = _Share(
            fraction=self._read(f"{name}.fraction", fraction, fraction(default)),
            least=self.memory(f"{name}.min", least),
            most=self.memory(f"{name}.max", most),
        )
        if bounds.least > bounds.most:
            at = f"{name}.min" if self.has(f"{name}.min") else f"{name}.max"
            self.contradiction(at, f"{name}.min = {_shown(bounds.least)} <= {name}.max = {_shown(bounds.most)}", "correct one of them")
        return bounds

    def contradiction(self, name: str, need: str, fix: str) -> NoReturn:
        """Raises SIZ-057 at one of the settings, or at the total if that one is not set."""
        key = self.key(name)
        raise FlinkMemoryContradicts(path=key, given=self._settings.get(key, ""), need=need, fix=fix)

    def missing(self, parts: str) -> NoReturn:
        need = f"{self._prefix}.process.size, or {self._prefix}.flink.size, or {self._prefix}.{parts}"
        raise FlinkMemoryMissing(path=f"{self._prefix}.process.size", need=need, fix='set the memory of the pod, for example "2048m"')

    def _read(self, name: str, parse: Callable[[str], Value], default: Value) -> Value:
        if not self.has(name):
            return default
        key = self.key(name)
        try:
            return parse(self._settings[key])
        except NotAQuantity as fault:
            raise BadFlinkSetting(path=key, given=self._settings[key], need=fault.need, fix=fault.fix) from None


def _from_task_parts(read: _Settings) -> dict[str, int]:
    """Task heap and managed memory are set: network memory is a fraction in addition to them, or the rest of the Flink memory."""
    parts = _given_parts(read)
    parts |= {"task_heap_bytes": read.memory("task.heap.size", 0), "managed_bytes": read.memory("managed.size", 0)}
    if read.has("flink.size"):
        return {**parts, "network_bytes": _network_rest(read, read.memory("flink.size", 0), parts, "flink.size")}
    return {**parts, "network_bytes": _network(read).beside(sum(parts.values()))}


def _from_flink_memory(read: _Settings, flink_bytes: int, total: str) -> dict[str, int]:
    """The Flink memory is known: the task heap is the rest, or, if that is set, network memory is."""
    parts = {**_given_parts(read), "managed_bytes": _managed(read, flink_bytes)}
    if read.has("task.heap.size"):
        parts["task_heap_bytes"] = read.memory("task.heap.size", 0)
        return {**parts, "network_bytes": _network_rest(read, flink_bytes, parts, total)}
    parts["network_bytes"] = _network(read).of(flink_bytes)
    task_heap = flink_bytes - sum(parts.values())
    if task_heap < 0:
        read.contradiction(total, f"{_sum(parts)} <= the Flink memory of {_shown(flink_bytes)}", _least(read, total))
    return {**parts, "task_heap_bytes": task_heap}


def _managed(read: _Settings, flink_bytes: int) -> int:
    if read.has("managed.size"):
        return read.memory("managed.size", 0)
    return read.share("managed", MANAGED_FRACTION, 0, MAX_LONG).of(flink_bytes)


def _least(read: _Settings, total: str) -> str:
    """The minimum total that leaves memory for the task heap, as a fix: fractions grow with it, so adding the deficit is not enough."""
    given, share, overhead = sum(_given_parts(read).values()), _network(read), _overhead(read)
    metaspace = read.memory("jvm-metaspace.size", METASPACE_BYTES)

    def fits(mib: int) -> bool:
        flink = mib * MIB - (metaspace + overhead.of(mib * MIB) if total == "process.size" else 0)
        return flink >= 0 and given + _managed(read, flink) + share.of(flink) <= flink

    least_mib = bisect_left(range(_MOST_MIB + 1), True, key=fits)
    return f'"{least_mib}m" or more' if least_mib <= _MOST_MIB else "reduce the fractions of managed and network memory"


def _given_parts(read: _Settings) -> dict[str, int]:
    return {
        "framework_heap_bytes": read.memory("framework.heap.size", FRAMEWORK_BYTES),
        "framework_off_heap_bytes": read.memory("framework.off-heap.size", FRAMEWORK_BYTES),
        "task_off_heap_bytes": read.memory("task.off-heap.size", 0),
    }


def _network(read: _Settings) -> _Share:
    return read.share("network", NETWORK_FRACTION, NETWORK_MIN_BYTES, NETWORK_MAX_BYTES)


def _network_rest(read: _Settings, flink_bytes: int, parts: Mapping[str, int], total: str) -> int:
    """The rest for network memory, checked against its bounds."""
    rest = flink_bytes - sum(parts.values())
    if rest < 0:
        read.contradiction(total, f"{_sum(parts)} <= the Flink memory of {_shown(flink_bytes)}", f"increase it by at least {_shown(-rest)}")
    share = _network(read)
    if not share.least <= rest <= share.most:
        need = f"network.min = {_shown(share.least)} <= the memory that remains for the network, {_shown(rest)}, <= network.max = "
        read.contradiction("task.heap.size", need + _shown(share.most), "correct the task heap, or the network limits")
    return rest


def _jvm_within(read: _Settings, parts: str) -> dict[str, int]:
    """Metaspace and overhead of a process whose total memory is set."""
    if not read.has("process.size"):
        read.missing(parts)
    process = read.memory("process.size", 0)
    metaspace = read.memory("jvm-metaspace.size", METASPACE_BYTES)
    overhead = _overhead(read).of(process)
    if metaspace + overhead > process:
        need = f"more than the metaspace and JVM overhead, {_shown(metaspace)} + {_shown(overhead)}"
        read.contradiction("process.size", need, f"increase it by more than {_shown(metaspace + overhead - process)}")
    return {"metaspace_bytes": metaspace, "overhead_bytes": overhead}


def _jvm_beside(read: _Settings, flink_bytes: int) -> dict[str, int]:
    """Metaspace and overhead of a process whose Flink memory is set."""
    metaspace = read.memory("jvm-metaspace.size", METASPACE_BYTES)
    share = _overhead(read)
    if not read.has("process.size"):
        return {"metaspace_bytes": metaspace, "overhead_bytes": share.beside(flink_bytes + metaspace)}
    overhead = read.memory("process.size", 0) - flink_bytes - metaspace
    if not share.least <= overhead <= share.most:
        left = (
            f"the overhead that remains after Flink memory ({_shown(flink_bytes)}) and metaspace ({_shown(metaspace)}), {_shown(overhead)}"
        )
        need = f"jvm-overhead.min = {_shown(share.least)} <= {left}, <= jvm-overhead.max = {_shown(share.most)}"
        read.contradiction("process.size", need, "set either the process memory or the Flink memory, not both")
    return {"metaspace_bytes": metaspace, "overhead_bytes": overhead}


def _overhead(read: _Settings) -> _Share:
    return read.share("jvm-overhead", OVERHEAD_FRACTION, OVERHEAD_MIN_BYTES, OVERHEAD_MAX_BYTES)


def _job_manager_off_heap(read: _Settings, heap: int, off_heap: int) -> int:
    """Off-heap memory for a given heap: the rest of the Flink memory, if that is set too."""
    if not read.has("flink.size"):
        return off_heap
    rest = read.memory("flink.size", 0) - heap
    if rest < 0 or (read.has("off-heap.size") and rest != off_heap):
        need = f"heap.size + off-heap.size = {_shown(heap)} + {_shown(off_heap)}"
        read.contradiction("flink.size", need, "remove one of the three")
    return rest


def _rest(read: _Settings, flink_bytes: int, off_heap: int, total: str) -> int:
    """The JobManager's heap: the Flink memory less the off-heap memory, which must be above 0."""
    if flink_bytes <= off_heap:
        need = f"a Flink memory, {_shown(flink_bytes)}, greater than the off-heap memory, {_shown(off_heap)}"
        read.contradiction(total, need, f"increase it by at least {_shown(off_heap - flink_bytes + MIB)}")
    return flink_bytes - off_heap


def _bounded(read: _Settings, parts: dict[str, int]) -> dict[str, int]:
    """The components, if a machine could have that much memory."""
    total = sum(parts.values())
    if not MIB <= total <= MAX_MEMORY_BYTES:
        read.contradiction("process.size", f"a process size from 1 MiB to 1024 TiB; this one has {_shown(total)}", "check the units")
    return parts


def _times(size: int, factor: float) -> int:
    """MemorySize.multiply: exact on the shortest decimal representation of the double, rounded down."""
    return int(size * Fraction(repr(factor)))


def _sum(parts: Mapping[str, int]) -> str:
    words = [f"{name.removesuffix('_bytes').replace('_', ' ')} {_shown(size)}" for name, size in parts.items() if size]
    return " + ".join(words)


def _shown(size: int) -> str:
    """Formats bytes: in MiB where that is exact."""
    return f"{size // MIB:,} MiB" if size % MIB == 0 else f"{size / MIB:,.3f} MiB"
