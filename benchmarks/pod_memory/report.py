"""Measured memory and disk beside the plan's, as tables of Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel, ConfigDict

from benchmarks.pod_memory.run import MeasuredRun, Pod
from benchmarks.streaming.results import Machine

_DRIVER = "driver"
_KINDS = (
    ("state_mib", "stateMib"),
    ("shuffle_mib", "shuffleMib"),
    ("spill_mib", "spillMib"),
    ("uploads_mib", "uploadsMib"),
    ("files_mib", "filesMib"),
    ("logs_mib", "logsMib"),
)
_JVM, _REST = "JVM with its buffers", "besides the heap"


class PodMemory(BaseModel):
    """A file of results.

    Args:
        machine: where.
        runs: one of each job.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    machine: Machine
    runs: list[MeasuredRun]


def joined(before: PodMemory | None, after: PodMemory) -> PodMemory:
    """Both; a job that was measured again has its later results."""
    again = {(run.job, run.full_heap) for run in after.runs}
    kept = [run for run in before.runs if (run.job, run.full_heap) not in again] if before else []
    return PodMemory(machine=after.machine, runs=[*kept, *after.runs])


def table(run: MeasuredRun) -> str:
    """The tables of a job."""
    heap = "" if run.full_heap else ", the heap as used"
    head = f"{run.job}{heap}: {run.seconds:.0f} s, {run.records:,} records in {run.micro_batches} micro-batches"
    rows = [row for pod in run.pods for row in (*_memory(run, pod), *_disk(run, pod))]
    return "\n".join((head, "| pod | part | measured, MiB | planned, MiB | difference |", "|---|---|---|---|---|", *rows))


def difference(measured: float, planned: float) -> str:
    """In percent of the plan."""
    return f"{(measured - planned) / planned:+.0%}" if planned else "-"


def planned_parts(run: MeasuredRun, pod: Pod) -> dict[str, float]:
    """What the plan says that a pod needs, by part."""
    sizes: dict[str, Any] = run.plan["pods"]["driver" if pod.name == _DRIVER else "executor"]
    if pod.name == _DRIVER:
        return {"heap": sizes["heapMib"], _REST: sizes["overheadMib"]}
    parts: dict[str, Any] = run.plan["executorOverhead"]
    return {
        "heap": sizes["heapMib"],
        _JVM: parts["jvmMib"] + parts["arrowMib"],
        "RocksDB": parts["rocksdbMib"],
        "Python": parts["pythonMib"],
        _REST: parts["neededMib"],
    }


def measured_parts(pod: Pod) -> dict[str, float]:
    """What a pod has, by the same parts."""
    parts = pod.parts
    return {
        "heap": parts.heap_mib,
        _JVM: parts.jvm_mib + parts.direct_mib,
        "RocksDB": parts.rocksdb_mib,
        "Python": parts.python_mib,
        _REST: parts.total_mib - parts.heap_mib,
    }


def _memory(run: MeasuredRun, pod: Pod) -> Iterator[str]:
    planned = planned_parts(run, pod)
    for name, value in measured_parts(pod).items():
        yield _row(pod, name, value, planned.get(name, 0))
    total = planned["heap"] + planned[_REST]
    yield _row(pod, "RSS, highest", pod.rss_mib, total)
    yield _row(pod, "RSS, median", pod.median_rss_mib, total)
    yield _row(pod, "working set, highest", pod.working_set_mib, total)
    yield _row(pod, "working set, median", pod.median_working_set_mib, total)
    yield _row(pod, f"limit; {pod.kills} killed", pod.working_set_mib, pod.limit_mib)


def _disk(run: MeasuredRun, pod: Pod) -> Iterator[str]:
    planned = run.plan["driverStorage" if pod.name == _DRIVER else "executorStorage"]
    for field, key in _KINDS:
        yield _row(pod, f"disk: {field.removesuffix('_mib')}", getattr(pod.disk, field), planned[key])


def summary(measured: PodMemory) -> str:
    """The tables of docs/sizing.md: memory, its parts, and disk, each with what is measured and, after a stroke, planned."""
    pods = [(run, pod) for run in measured.runs for pod in _one_of_a_kind(run)]
    memory = ["| job | pod | planned | RSS, median | RSS, highest | working set, median | working set, highest | difference | killed |"]
    memory += ["|---|---|---|---|---|---|---|---|---|", *(_summed(run, pod) for run, pod in pods)]
    parts = ["| job | pod | JVM with its buffers | RocksDB | Python | besides the heap |", "|---|---|---|---|---|---|"]
    parts += [_by_part(run, pod) for run, pod in pods]
    disk = ["| job | pod | state | shuffles | spills | uploads | files | logs |", "|---|---|---|---|---|---|---|---|"]
    disk += [_by_kind(run, pod) for run, pod in pods]
    return "\n".join((*memory, "", *parts, "", *disk))


def _one_of_a_kind(run: MeasuredRun) -> Iterator[Pod]:
    """The driver, and the executor that took more."""
    yield next(pod for pod in run.pods if pod.name == _DRIVER)
    yield max((pod for pod in run.pods if pod.name != _DRIVER), key=lambda pod: pod.working_set_mib)


def _kind(pod: Pod) -> str:
    return _DRIVER if pod.name == _DRIVER else "executor"


def _summed(run: MeasuredRun, pod: Pod) -> str:
    planned = planned_parts(run, pod)
    total = planned["heap"] + planned[_REST]
    sizes = (total, pod.median_rss_mib, pod.rss_mib, pod.median_working_set_mib, pod.working_set_mib)
    numbers = " | ".join(f"{size:,.0f}" for size in sizes)
    return f"| {run.job} | {_kind(pod)} | {numbers} | {difference(pod.working_set_mib, total)} | {pod.kills} |"


def _by_part(run: MeasuredRun, pod: Pod) -> str:
    planned, parts = planned_parts(run, pod), measured_parts(pod)
    cells = (f"{parts[name]:,.0f}" + (f" / {planned[name]:,.0f}" if name in planned else "") for name in (_JVM, "RocksDB", "Python", _REST))
    return f"| {run.job} | {_kind(pod)} | {' | '.join(cells)} |"


def _by_kind(run: MeasuredRun, pod: Pod) -> str:
    planned = run.plan["driverStorage" if pod.name == _DRIVER else "executorStorage"]
    cells = (f"{getattr(pod.disk, field):,.0f} / {planned[key]:,}" for field, key in _KINDS)
    return f"| {run.job} | {_kind(pod)} | {' | '.join(cells)} |"


def _row(pod: Pod, part: str, measured: float, planned: float) -> str:
    return f"| {pod.name} | {part} | {measured:,.0f} | {planned:,.0f} | {difference(measured, planned)} |"
