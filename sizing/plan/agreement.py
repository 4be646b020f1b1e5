"""Merges the spec's fields with sparkConf, before memory is computed.

A field and a setting may both be set if they agree, and either may be set alone. If they differ, the intent is ambiguous: that is an
error, never a silent choice.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from penstock.sizing.errors import LimitBelowRequest, NoTaskSlot, PenstockError, SettingContradicts
from penstock.sizing.executors import task_slots
from penstock.sizing.spark_pods import DEFAULT_DRIVER_CPU_MILLICORES, DEFAULT_DRIVER_POD_MIB
from penstock.sizing.spark_settings import PodSettings, SparkSettings
from penstock.sizing.targets import Targets


class AgreedPod(BaseModel):
    """One kind of pod, with everything but the components of its memory.

    Args:
        cores: ``spark.<kind>.cores``, an integer.
        request_cpu_millicores: the pod's CPU request.
        limit_cpu_millicores: the pod's CPU limit; None: none.
        memory_mib: the pod's memory, or None if `heap_mib` determines it.
        heap_mib: the heap, or None if `memory_mib` determines it.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    cores: int
    request_cpu_millicores: int
    limit_cpu_millicores: int | None
    memory_mib: int | None
    heap_mib: int | None


def agreed_executor(targets: Targets, settings: SparkSettings) -> tuple[AgreedPod, list[PenstockError]]:
    """The executor, with SIZ-001 (no task slot), SIZ-003 (contradiction) and SIZ-006 (limit below request) where they apply."""
    asked, own = targets.executor, settings.executor
    stated = _first(asked.cpu_millicores, own.request_cpu_millicores)
    cores = executor_cores(targets, settings)
    pod = AgreedPod(
        cores=cores,
        request_cpu_millicores=stated or cores * 1000,
        limit_cpu_millicores=own.limit_cpu_millicores,
        memory_mib=asked.memory_mib,
        heap_mib=asked.heap_mib,
    )
    faults = [
        *_differ(targets, "spark.executor.cores", own.cores, asked.slots, f"{asked.slots}, the executor's slots"),
        *_cpu_differs(targets, "executor", own, asked.cpu_millicores),
        *_heap_differs(targets, "executor", own, asked.heap_mib),
        *_limit(targets, "executor", pod),
    ]
    if task_slots(cores, settings.task_cpus) < 1:
        need = f"spark.executor.cores >= spark.task.cpus = {settings.task_cpus}"
        fix = f"slots: {-(-settings.task_cpus // 1)}, or remove spark.task.cpus from sparkConf"
        faults.append(targets.locate(NoTaskSlot(given=str(cores), need=need, fix=fix), "executor.slots"))
    return pod, faults


def executor_cores(targets: Targets, settings: SparkSettings) -> int:
    """``spark.executor.cores``: the executor's slots, otherwise the value in sparkConf, otherwise the whole cores, at least 1."""
    asked, own = targets.executor, settings.executor
    stated = _first(asked.cpu_millicores, own.request_cpu_millicores)
    return _first(asked.slots, own.cores) or max(1, (stated or 0) // 1000)


def agreed_driver(targets: Targets, settings: SparkSettings, needed_mib: int) -> tuple[AgreedPod, list[PenstockError]]:
    """The driver; SIZ-003 and SIZ-006 as for `agreed_executor`. The default is 1 core and a pod of 2 GiB, or more if it needs more.

    Args:
        targets: the targets.
        settings: settings of the job.
        needed_mib: the pod that its tasks and queries need.
    """
    asked, own = targets.driver, settings.driver
    fallback = DEFAULT_DRIVER_CPU_MILLICORES if own.cores is None else own.cores * 1000
    request = _first(asked.cpu_millicores, own.request_cpu_millicores) or fallback
    heap_mib = _first(asked.heap_mib, own.heap_mib) if asked.memory_mib is None else None
    pod = AgreedPod(
        cores=own.cores or -(-request // 1000),
        request_cpu_millicores=request,
        limit_cpu_millicores=own.limit_cpu_millicores,
        memory_mib=None if heap_mib is not None else _first(asked.memory_mib, max(DEFAULT_DRIVER_POD_MIB, needed_mib)),
        heap_mib=heap_mib,
    )
    whole = None if asked.cpu_millicores is None else -(-asked.cpu_millicores // 1000)
    faults = [
        *_differ(targets, "spark.driver.cores", own.cores, whole, f"{whole}, the driver's cores rounded up"),
        *_cpu_differs(targets, "driver", own, asked.cpu_millicores),
        *_heap_differs(targets, "driver", own, asked.heap_mib),
        *_limit(targets, "driver", pod),
    ]
    return pod, faults


def plan_contradictions(targets: Targets, settings: SparkSettings, executors: int) -> list[PenstockError]:
    """SIZ-003 if sparkConf sets another number of executors than the plan, or a dynamic one."""
    rule = f"{executors}, derived from the parallelism and the slots"
    faults = _differ(targets, "spark.executor.instances", settings.executor_instances, executors, rule)
    if settings.dynamic_allocation:
        need = "false: the plan fixes the number of executors, and Spark's dynamic allocation does not follow a stream's rate"
        faults += _contradiction(targets, "spark.dynamicAllocation.enabled", need)
    return faults


def heap_contradiction(targets: Targets, kind: str, settings: PodSettings, planned_heap_mib: int) -> list[PenstockError]:
    """SIZ-003 if sparkConf sets a heap that contradicts the pod's memory.

    Args:
        targets: the targets.
        kind: ``executor`` or ``driver``.
        settings: settings of that kind.
        planned_heap_mib: heap that the pod's memory leaves.
    """
    if settings.heap_mib is None or settings.heap_mib == planned_heap_mib:
        return []
    need = f"{planned_heap_mib}m, the heap that fits in the pod's memory"
    fix = f"remove it, or set {kind}.heap instead of {kind}.memory"
    return _contradiction(targets, f"spark.{kind}.memory", need, fix)


def _first(*values: int | None) -> int | None:
    return next((value for value in values if value is not None), None)


def _differ(targets: Targets, key: str, setting: int | None, field: int | None, need: str) -> list[PenstockError]:
    if setting is None or field is None or setting == field:
        return []
    return _contradiction(targets, key, need)


def _cpu_differs(targets: Targets, kind: str, own: PodSettings, asked: int | None) -> list[PenstockError]:
    key = f"spark.kubernetes.{kind}.request.cores"
    return _differ(targets, key, own.request_cpu_millicores, asked, f"{cpu_text(asked or 0)}, the {kind}'s cores")


def _heap_differs(targets: Targets, kind: str, own: PodSettings, asked: int | None) -> list[PenstockError]:
    return _differ(targets, f"spark.{kind}.memory", own.heap_mib, asked, f"{asked}m, the {kind}'s heap")


def _limit(targets: Targets, kind: str, pod: AgreedPod) -> list[PenstockError]:
    key = f"spark.kubernetes.{kind}.limit.cores"
    if pod.limit_cpu_millicores is None or pod.limit_cpu_millicores >= pod.request_cpu_millicores:
        return []
    request = cpu_text(pod.request_cpu_millicores)
    given = targets.spark_conf.get(key, "")
    fault = LimitBelowRequest(given=given, need=f"at least the request: {request}", fix=f'"{request}", or no limit')
    return [targets.locate(fault, f"spark_conf.{key}")]


def _contradiction(targets: Targets, key: str, need: str, fix: str = "remove it, or change the field") -> list[PenstockError]:
    fault = SettingContradicts(given=targets.spark_conf.get(key, ""), need=need, fix=fix)
    return [targets.locate(fault, f"spark_conf.{key}")]


def cpu_text(millicores: int) -> str:
    """Formats a CPU request for Kubernetes and Spark: ``4``, ``4500m``."""
    return str(millicores // 1000) if millicores % 1000 == 0 else f"{millicores}m"
