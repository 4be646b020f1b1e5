"""Pods of a FlinkDeployment: memory and CPU as interpreted by Flink and its operator."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Generic, TypeVar

from penstock.jobs.document import Path_, dotted
from penstock.jobs.flink.deployment import SPEC, JobManager, TaskManager
from penstock.jobs.flink.reading import Reading
from penstock.sizing.errors import PenstockError
from penstock.sizing.flink.errors import BadFlinkSetting
from penstock.sizing.flink.memory import (
    JOB_MANAGER,
    TASK_MANAGER,
    JobManagerMemory,
    TaskManagerMemory,
    job_manager_memory,
    task_manager_memory,
)
from penstock.sizing.flink.values import cores, resource_memory_bytes, whole_number
from penstock.sizing.units import MAX_CPU_MILLICORES, MIB, NotAQuantity, cpu_text, memory_mib

Memory = TypeVar("Memory", TaskManagerMemory, JobManagerMemory)


class FlinkPod(Generic[Memory]):
    """A kind of pod as started by Flink.

    Args:
        memory: components of its memory.
        memory_text: its memory in the format of a job spec.
        cpu_millicores: CPU request.
        limit_millicores: CPU limit that Flink sets.
    """

    def __init__(self, memory: Memory, memory_text: str, cpu_millicores: int, limit_millicores: int) -> None:
        self.memory: Memory = memory
        self.memory_text = memory_text
        self.cpu_millicores = cpu_millicores
        self.limit_millicores = limit_millicores


class FlinkPods:
    """Reads the pods of a deployment; errors and notes are added to the reading.

    Args:
        reading: reading of the deployment.
    """

    def __init__(self, reading: Reading) -> None:
        self._doc = reading

    def task_manager(self, slots: int) -> FlinkPod[TaskManagerMemory] | None:
        """The TaskManager pod; None if its memory can't be determined."""
        manager = self._doc.spec.task_manager or TaskManager()
        cpu = self._cpu("taskManager", manager, "taskmanager", default=slots)
        memory = self._memory("taskManager", manager, TASK_MANAGER, task_manager_memory)
        return self._pod("executor", memory, cpu) if memory else None

    def job_manager(self) -> FlinkPod[JobManagerMemory] | None:
        """The JobManager pod; None if its memory can't be determined."""
        manager = self._doc.spec.job_manager or JobManager()
        if manager.replicas is not None and manager.replicas > 1:
            at = (*SPEC, "jobManager", "replicas")
            self._doc.note(
                "driver", at, "a single driver runs without standby; Kubernetes restarts it, and it resumes from the last commit"
            )
        # Source: Flink 1.20.3, kubernetes.jobmanager.cpu.amount defaults to 1.0.
        cpu = self._cpu("jobManager", manager, "jobmanager", default=1)
        memory = self._memory("jobManager", manager, JOB_MANAGER, job_manager_memory)
        return self._pod("driver", memory, cpu) if memory else None

    def _pod(self, field: str, memory: Memory, cpu: tuple[int, int]) -> FlinkPod[Memory]:
        if memory.process_bytes % MIB:
            self._doc.note(
                field,
                self._doc.paths[f"{field}.memory_mib"],
                f"{memory.process_bytes} bytes; Flink's pod also requests whole MiB, rounded down",
            )
        if cpu[1] != cpu[0] or field == "executor":
            words = f"Flink limits the CPU of its pods, here to {cpu_text(cpu[1])}; Spark sets no limit unless sparkConf contains"
            self._doc.note(field, (), f"{words} spark.kubernetes.{field}.limit.cores")
        return FlinkPod(memory, self._memory_text(field, memory.pod_mib), *cpu)

    def _memory(
        self, kind: str, manager: TaskManager | JobManager, prefix: str, model: Callable[[dict[str, str]], Memory]
    ) -> Memory | None:
        """Memory of a kind of process: the pod's from its resource, everything else from the configuration."""
        total = f"{prefix}.process.size"
        field = "executor" if kind == "taskManager" else "driver"
        settings, text, path = dict(self._doc.settings), *self._resource(kind, manager, "memory")
        self._doc.paths[f"{field}.memory_mib"] = path
        if text is not None:
            if total in settings:
                self._doc.note(field, self._doc.places[total], f"overwritten by the operator with {dotted(path)}")
            try:
                settings[total] = f"{resource_memory_bytes(text)}b"
            except NotAQuantity as fault:
                self._doc.fault(BadFlinkSetting(need=fault.need, fix=fault.fix), path)
                return None
        else:
            # The total of the process, or the setting that Flink derives it from.
            given = [f"{prefix}.{name}.size" for name in ("process", "flink", "task.heap", "heap")]
            self._doc.paths[f"{field}.memory_mib"] = next((self._doc.places[key] for key in given if key in self._doc.places), path)
        try:
            return model(settings)
        except PenstockError as fault:
            at = path if text is not None and fault.path == total else self._doc.places.get(fault.path, path)
            fault.path = fault.given = ""
            self._doc.fault(fault, at)
            return None

    def _older_resource(self, kind: str, field: str, manager: TaskManager | JobManager) -> None:
        """Adds a note that the operator's resource is ignored if Kubernetes' resources are set."""
        if manager.resource and manager.resources and (manager.resources.requests or manager.resources.limits):
            self._doc.note(field, (*SPEC, kind, "resource"), f"the operator prefers {kind}.resources")

    def _resource(self, kind: str, manager: TaskManager | JobManager, name: str) -> tuple[str | None, Path_]:
        """Memory or CPU of the deployment: Kubernetes' resources take precedence over the operator's, requests over limits."""
        resources = manager.resources
        for among, values in (("requests", resources and resources.requests), ("limits", resources and resources.limits)):
            if values and name in values:
                return str(values[name]), (*SPEC, kind, "resources", among, name)
        path: Path_ = (*SPEC, kind, "resource", name)
        if resources and (resources.requests or resources.limits):
            return None, path
        value = getattr(manager.resource, name, None)
        # As written in the document: 1, not the model's 1.0.
        return (None if value is None else str(value).removesuffix(".0")), path

    def _cpu(self, kind: str, manager: TaskManager | JobManager, prefix: str, default: int) -> tuple[int, int]:
        """CPU request and limit of a pod in millicores, rounded up as in Kubernetes."""
        field = "executor" if kind == "taskManager" else "driver"
        self._older_resource(kind, field, manager)
        text, path = self._winning_cpu(kind, field, manager, prefix)
        amount = float(default)
        self._doc.paths[f"{field}.cpu_millicores"] = path
        if text is not None:
            amount = self._doc.parsed(text, _kubernetes_cores, path, amount)
        factor = self._doc.read(f"kubernetes.{prefix}.cpu.limit-factor", cores, 1.0)
        millicores = _millicores(amount)
        limit = self._limit(manager, millicores, factor)
        if Fraction(str(amount)) * 1000 != millicores:
            self._doc.note(field, path, "rounded up to a whole millicore, as Kubernetes does")
        return millicores, limit

    def _winning_cpu(self, kind: str, field: str, manager: TaskManager | JobManager, prefix: str) -> tuple[str | None, Path_]:
        """Flink's own key takes precedence over the operator's field, which takes precedence over the keys that the operator writes it
        to.
        """
        text, path = self._resource(kind, manager, "cpu")
        first = ["taskmanager.cpu.cores"] if kind == "taskManager" else []
        last = [f"kubernetes.{prefix}.cpu.amount", f"kubernetes.{prefix}.cpu"]
        given = [(self._doc.settings[key], self._doc.places[key]) for key in first if key in self._doc.places]
        given += [(text, path)] if text is not None else []
        given += [(self._doc.settings[key], self._doc.places[key]) for key in last if key in self._doc.places]
        for _, place in given[1:]:
            self._doc.note(field, place, f"{dotted(given[0][1])} takes precedence")
        return given[0] if given else (None, path)

    def _limit(self, manager: TaskManager | JobManager, millicores: int, factor: float) -> int:
        limits = (manager.resources.limits if manager.resources else None) or {}
        if "cpu" in limits:
            kind = "taskManager" if isinstance(manager, TaskManager) else "jobManager"
            return _millicores(
                self._doc.parsed(str(limits["cpu"]), _kubernetes_cores, (*SPEC, kind, "resources", "limits", "cpu"), millicores / 1000)
            )
        return max(millicores, _millicores(millicores / 1000 * factor))

    def _memory_text(self, field: str, pod_mib: int) -> str:
        """The memory as written by the user if a spec accepts that format, else in g or m."""
        given = self._doc.file.document.given(self._doc.paths[f"{field}.memory_mib"]).strip('"')
        try:
            if memory_mib(given) == pod_mib:
                return given
        except NotAQuantity:
            pass
        return f"{pod_mib // 1024}g" if pod_mib % 1024 == 0 else f"{pod_mib}m"


def _millicores(amount: float) -> int:
    millicores = -(-Fraction(str(amount)) * 1000 // 1)
    return min(max(1, int(millicores)), MAX_CPU_MILLICORES)


def _kubernetes_cores(text: str) -> float:
    """``1``, ``0.5``, and ``500m``, which is valid in Kubernetes' resources."""
    return cores(str(whole_number(text.strip()[:-1]) / 1000)) if text.strip().endswith("m") else cores(text)
